"""The audit: a schedule's slots worked out anew from its revisions, held against what the ledger says of them."""

from duly.domain.audit.equation import Equation
from duly.domain.audit.findings import Finding, Law
from duly.domain.audit.judgement import Judgement, Verdict
from duly.domain.audit.records import AuditedRun, LiveJob, Missing, Stray
from duly.domain.audit.terms import Term, term_at, terms_of
from duly.domain.audit.timekeeping import GRACE, Timekeeping

__all__ = [
    "GRACE",
    "AuditedRun",
    "Equation",
    "Finding",
    "Judgement",
    "Law",
    "LiveJob",
    "Missing",
    "Stray",
    "Term",
    "Timekeeping",
    "Verdict",
    "term_at",
    "terms_of",
]
