"""`duly workflow`: documents of actions, deployed in versions and run."""

from typing import TYPE_CHECKING, Any

from duly.cli import exits
from duly.cli.consent import held_back, is_dry_run
from duly.cli.given import object_from
from duly.cli.listing import Listing, add_page, show_list
from duly.cli.output import facts, note, say, say_json, table, tell, written
from duly.cli.parser import Commands, Options, Parser, add_dry_run, add_json, add_wait, add_yes, whole
from duly.cli.shapes import at
from duly.cli.store import changing, looking
from duly.cli.waiting import deadline_of, end_of_job
from duly.domain.ids import JobId
from duly.domain.payloads import value_of
from duly.domain.workflows import MOST_VERSIONS, Launch, Workflow, WorkflowVersion, plan_of

if TYPE_CHECKING:
    from duly.application.dag_runs import Told
    from duly.bootstrap import Queue


def define(parser: Parser) -> None:
    commands = Commands(parser)
    deploy_ = commands.add("deploy", deploy, "store a document as the next version, and make its schedules so")
    deploy_.add_argument("file", metavar="FILE", help="the document, as JSON; - for stdin")
    deploy_.add_argument("--owner", default="local", metavar="NAME", help="whose it is (default: local)")
    add_dry_run(deploy_)
    listed = commands.add("list", list_all, "all of them")
    add_page(listed, "NAME")
    show_ = commands.add("show", show, "one of them: its document and its schedules")
    versions_ = commands.add("versions", versions, "its versions, the newest first")
    run_ = commands.add("run", run, "run it now")
    runs_ = commands.add("runs", runs, "its runs, the last first")
    undeploy_ = commands.add("undeploy", undeploy, "delete its schedules; its versions and runs stay on record")
    for command in (show_, versions_, run_, runs_, undeploy_):
        command.add_argument("name", metavar="NAME")
    for command in (show_, run_):
        command.add_argument(
            "--version", type=whole(1, MOST_VERSIONS), metavar="N", help="which one (default: the newest)"
        )
    add_page(versions_, "N", read=whole(1, MOST_VERSIONS))
    add_page(runs_, "RUN")
    run_.add_argument("--params", metavar="JSON", help="what it is given: JSON, @file, or - for stdin")
    run_.add_argument("--key", metavar="TEXT", help="launches once, however often it is given")
    add_wait(run_)
    add_dry_run(run_)
    add_dry_run(undeploy_)
    add_yes(undeploy_)
    for command in (deploy_, show_, run_, undeploy_):
        add_json(command)


def deploy(options: Options) -> int:
    document = object_from("-" if options.file == "-" else f"@{options.file}", field="FILE")
    plan = plan_of(document)
    if options.dry_run:
        note(
            f"dry run: {plan.name} has {len(plan.nodes)} nodes and {len(plan.triggers)} schedules; nothing was changed"
        )
        return exits.OK

    async def change(queue: "Queue") -> int:
        deployed = await queue.workflows.deploy(document or {}, owner=options.owner)
        if options.json:
            say_json(_wire().deployed_shape(deployed).model_dump(mode="json"))
            return exits.OK
        is_so = "deployed" if deployed.is_new else "is so already:"
        say(f"{is_so} {deployed.version.graph_id}")
        for each in deployed.schedules:
            say(f"  {each.fate.value} {each.schedule_id}, next {at(each.next_run_at)}")
        return exits.OK

    return changing(change, creates=True)


def list_all(options: Options) -> None:
    listing: Listing[Workflow] = Listing(
        heads=("name", "newest", "deployed", "changed"),
        row=lambda each: (each.name, each.newest, "yes" if each.deployed else "no", at(each.updated_at)),
        shape=lambda each: _wire().workflow_shape(each).model_dump(mode="json"),
        key=lambda each: each.name,
        empty="no workflows; deploy one: duly workflow deploy FILE",
    )
    show_list(options, listing, lambda queue: queue.workflows.list(owner=None, after=options.after, most=options.most))


def show(options: Options) -> None:
    async def look(queue: "Queue") -> None:
        workflow = await queue.workflows.get(options.name, owner=None)
        version = await queue.workflows.version(options.name, options.version, owner=None)
        schedules = list(await queue.workflows.schedules_of(options.name, owner=None))
        if options.json:
            say_json(_wire().detail_shape(workflow, version, schedules).model_dump(mode="json"))
            return
        facts(
            [
                ("name", workflow.name),
                ("owner", workflow.owner),
                ("version", f"{version.version} of {workflow.newest}"),
                ("deployed", "yes" if workflow.deployed else "no"),
            ]
        )
        rows = [(each.id, ", ".join(each.needs), _action(each.action)) for each in version.plan.nodes]
        table(("node", "needs", "action"), rows, empty="no nodes")
        for each in schedules:
            say(f"{each.id}: {each.cadence.explain()}, {each.state.value}")

    looking(look)


def versions(options: Options) -> None:
    listing: Listing[WorkflowVersion] = Listing(
        heads=("version", "created", "nodes", "hash"),
        row=lambda each: (each.version, at(each.created_at), len(each.plan.nodes), each.hash[:12]),
        shape=lambda each: _wire().version_shape(each).model_dump(mode="json"),
        key=lambda each: str(each.version),
        empty="no versions",
    )
    show_list(
        options,
        listing,
        lambda queue: queue.workflows.versions(options.name, owner=None, before=options.after, most=options.most),
    )


def run(options: Options) -> int:
    params = object_from(options.params, field="--params")

    async def change(queue: "Queue") -> int:
        deadline = deadline_of(options, queue.storage.clock)
        workflow = await queue.workflows.get(options.name, owner=None)
        if options.dry_run:
            version = await queue.workflows.version(options.name, options.version, owner=None)
            version.plan.input_for(params, field="--params")
            is_dry_run(options, f"run {version.graph_id}")
            return exits.OK
        launch = await queue.launches.launch(
            workflow.name, owner=workflow.owner, version=options.version, params=params, key=options.key
        )
        if not options.wait:
            return _told(options, launch)
        note(f"waiting for {launch.job_id}")
        ended = await end_of_job(queue, JobId(launch.job_id), deadline=deadline)
        if ended is None:
            note(f"it has not ended; see: duly job show {launch.job_id}")
            return exits.TIMED_OUT
        return await _told_end(queue, options, launch)

    return changing(change)


def runs(options: Options) -> None:
    listing: Listing[Told] = Listing(
        heads=("id", "version", "status", "started", "why"),
        row=lambda each: (each.run.run_id, each.run.version, _state(each.execution.ok), at(each.run.begun_at),
                          each.execution.error_message),
        shape=lambda each: _wire().run_shape(each).model_dump(mode="json"),
        key=lambda each: each.run.run_id,
        empty="no runs",
    )  # fmt: skip
    show_list(
        options,
        listing,
        lambda queue: queue.dag_runs.list(options.name, owner=None, before=options.after, most=options.most),
    )


def undeploy(options: Options) -> int:
    looking(lambda queue: queue.workflows.get(options.name, owner=None))
    held = held_back(options, f"undeploy {options.name}", f"undeploy workflow {options.name!r}?")
    if held is not None:
        return held

    async def change(queue: "Queue") -> int:
        gone = list(await queue.workflows.undeploy(options.name, owner=None))
        sentence = f"undeployed {options.name}; deleted {', '.join(gone) or 'no schedules'}"
        tell(options, lambda: {"schedules": gone}, sentence)
        return exits.OK

    return changing(change)


def _told(options: Options, launch: Launch) -> int:
    if options.json:
        say_json(_wire().launch_shape(launch).model_dump(mode="json"))
    else:
        say(f"launched {launch.workflow}@{launch.version} as {launch.job_id}")
    return exits.OK


async def _told_end(queue: "Queue", options: Options, launch: Launch) -> int:
    execution = await queue.storage.read(lambda tx: tx.executions.by_key(launch.execution_key))
    if execution is None:
        note(f"it ended without a run; see: duly job show {launch.job_id}")
        return exits.FAILED
    told = await queue.dag_runs.get(execution.run_id, owner=None)
    if options.json:
        say_json(_wire().run_detail_shape(told).model_dump(mode="json"))
    else:
        rows = [(row.node, row.state.value, row.tries, row.error or "") for row in told.nodes]
        table(("node", "state", "tries", "error"), rows, empty="no nodes")
        if told.execution.result is not None:
            say(written(value_of(told.execution.result)))
    return exits.OK if told.execution.ok else exits.FAILED


def _state(ok: bool | None) -> str:
    return "running" if ok is None else "success" if ok else "error"


def _action(action: Any) -> str:
    return action if isinstance(action, str) else f"{action.method} {action.url}"


def _wire() -> Any:
    """For programs alone: people need not wait for it."""
    from duly.wire import workflows

    return workflows
