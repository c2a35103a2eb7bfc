"""`app.why` of whatever a program has in hand."""

import pytest

from duly import Duly, NotFound
from duly.domain.explanations import Explained


@pytest.mark.req("OWN-02")
async def test_a_program_asks_why_by_what_it_was_answered(app: Duly) -> None:
    @app.job
    def brew() -> None: ...

    async with app:
        put = await app.put(brew)
        group = await app.group([brew, brew])
        job, by_id, of_group = await app.why(put), await app.why(put.job_id), await app.why(group)
        with pytest.raises(NotFound, match="job_99"):
            await app.why("job_99")

    assert isinstance(job, Explained)
    assert (job.answer, job.sentences) == (by_id.answer, by_id.sentences)
    assert of_group.sentences[1] == "It is RUNNING: 2 live."


@pytest.mark.req("OWN-02")
def test_a_program_without_an_event_loop_asks_the_same(app: Duly) -> None:
    @app.job
    def brew() -> None: ...

    with app.sync as sync:
        assert sync.why(sync.put(brew)).answer == "waiting"
