"""`duly webhook deliveries`, `delivery` and `resend`: what became of telling others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duly.cli import exits
from duly.cli.consent import is_dry_run
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import facts, say_json, shortened, table, tell
from duly.cli.parser import Commands, Options, add_dry_run, add_json
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.cli.webhook_shapes import delivery_detail_shape, delivery_shape
from duly.domain.webhooks.deliveries import Delivery, DeliveryState

if TYPE_CHECKING:
    from duly.bootstrap import Queue

_SHOWN = 60


def define_deliveries(commands: Commands) -> None:
    listed = commands.add("deliveries", list_all, "what was sent, the newest first")
    listed.add_argument("--webhook", metavar="WEBHOOK", help="only to this one")
    listed.add_argument("--about", metavar="ID", help="only those that tell of this job, group or run")
    listed.add_argument("--state", choices=list(DeliveryState), help="only in this state")
    add_page(listed, "DELIVERY", most=50)
    show_ = commands.add("delivery", show, "one delivery, with a line for each try")
    resend_ = commands.add("resend", resend, "send a delivery again, under the same id")
    add_dry_run(resend_)
    for command in (show_, resend_):
        command.add_argument("id", metavar="DELIVERY")
    for command in (show_, resend_):
        add_json(command)


def list_all(options: Options) -> None:
    async def fetch(queue: "Queue") -> Sequence[Delivery]:
        return await queue.webhooks.deliveries(
            owner=None,
            endpoint_id=options.webhook,
            about=options.about,
            state=options.state and DeliveryState(options.state),
            before=options.after,
            most=options.most,
        )

    show_list(options, _LISTING, fetch)


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


_LISTING: Listing[Delivery] = Listing(
    heads=("id", "type", "about", "state", "tries", "status", "created", "error"),
    row=_row,
    shape=delivery_shape,
    key=lambda delivery: delivery.id,
    empty="no deliveries",
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
        if is_dry_run(options, f"send {delivery.id} again"):
            return exits.OK
        sent = await queue.webhooks.resend(delivery.id, owner=None)
        tell(options, lambda: delivery_shape(sent), f"sending {sent.id} again")
        return exits.OK

    return changing(change)
