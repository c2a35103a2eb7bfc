"""`duly webhook deliveries`, `delivery` and `resend`: what became of telling others."""

from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.output import facts, note, say, say_json, shortened, table
from duly.cli.parser import Commands, Options, add_dry_run, add_json, whole
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.cli.webhook_shapes import delivery_detail_shape, delivery_shape, page_of
from duly.domain.webhooks.deliveries import Delivery, DeliveryState

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_SHOWN = 60


def define_deliveries(commands: Commands) -> None:
    listed = commands.add("deliveries", list_all, "what was sent, the newest first")
    listed.add_argument("--webhook", metavar="WEBHOOK", help="only to this one")
    listed.add_argument("--about", metavar="ID", help="only those that tell of this job, group or run")
    listed.add_argument("--state", choices=list(DeliveryState), help="only in this state")
    listed.add_argument("--most", type=whole(1, 1_000), default=50, metavar="N", help="how many at most (default: 50)")
    show_ = commands.add("delivery", show, "one delivery, with a line for each try")
    resend_ = commands.add("resend", resend, "send a delivery again, under the same id")
    add_dry_run(resend_)
    for command in (show_, resend_):
        command.add_argument("id", metavar="DELIVERY")
    for command in (listed, show_, resend_):
        add_json(command)


def list_all(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        found = await queue.webhooks.deliveries(
            owner=None,
            endpoint_id=options.webhook,
            about=options.about,
            state=options.state and DeliveryState(options.state),
            most=options.most,
        )
        if options.json:
            say_json(page_of([delivery_shape(each) for each in found]))
            return
        table(
            ("id", "type", "about", "state", "tries", "status", "created", "error"),
            [_row(each) for each in found],
            empty="no deliveries",
        )

    looking(look)


def _row(delivery: Delivery) -> tuple[object, ...]:
    return (
        delivery.id,
        delivery.type,
        delivery.subject_id,
        delivery.state.value,
        delivery.attempts,
        delivery.status,
        at(delivery.created_at),
        shortened(delivery.error or "", longest=_SHOWN),
    )


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        delivery, log = await queue.webhooks.delivery(options.id, owner=None)
        if options.json:
            say_json(delivery_detail_shape(delivery, log))
            return
        facts(
            [
                ("id", delivery.id),
                ("webhook", delivery.endpoint_id),
                ("webhook-id", delivery.event_id),
                ("type", delivery.type),
                ("about", delivery.subject_id),
                ("state", delivery.state.value),
                ("next try", at(delivery.due_at) if delivery.state is DeliveryState.PENDING else None),
                ("error", delivery.error),
            ]
        )
        table(
            ("try", "at", "ms", "status", "error", "answer"),
            [
                (each.number, at(each.at), each.ms, each.status, each.error, shortened(each.excerpt, longest=_SHOWN))
                for each in log
            ],
            empty="not tried yet",
        )

    looking(look)


def resend(options: Options) -> int:
    async def change(queue: "Queue") -> int:
        delivery, _ = await queue.webhooks.delivery(options.id, owner=None)
        if options.dry_run:
            note(f"dry run: would send {delivery.id} again; nothing was changed")
            return exits.OK
        sent = await queue.webhooks.resend(delivery.id, owner=None)
        if options.json:
            say_json(delivery_shape(sent))
        else:
            say(f"sending {sent.id} again")
        return exits.OK

    return changing(change)
