"""Which tools work with git? Those of a repository that lies in the workspace; nothing here reaches a remote."""

from tools.git.branches import BRANCH_LIST, CHECKOUT, CREATE_BRANCH
from tools.git.committing import COMMIT
from tools.git.diffs import DIFF, DIFF_STAGED, DIFF_UNSTAGED
from tools.git.history import LOG, SHOW
from tools.git.staging import ADD, RESET
from tools.git.status import STATUS

GIT = (
    STATUS,
    DIFF_UNSTAGED,
    DIFF_STAGED,
    DIFF,
    COMMIT,
    ADD,
    RESET,
    LOG,
    CREATE_BRANCH,
    CHECKOUT,
    SHOW,
    BRANCH_LIST,
)

__all__ = ["GIT"]
