"""Everything that can be asked over HTTP, in one table."""

from accord.transports import archive, http, operator

ROUTES = (*http.TABLE, *archive.TABLE, *operator.TABLE)
