"""What Alembic runs for each command: on the connection that `tilewright.store.migrations.lift` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
