"""Which tools work with git? Those of a repository that lies in the workspace; nothing here reaches a remote."""

from tools.git.offers.changing import ADD, CHECKOUT, COMMIT, CREATE_BRANCH, RESET
from tools.git.offers.looking import BRANCH_LIST, DIFF, DIFF_STAGED, DIFF_UNSTAGED, LOG, SHOW, STATUS

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
