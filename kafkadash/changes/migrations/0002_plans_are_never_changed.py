"""A plan that was approved is the plan that is run: the database itself refuses to change one."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION changes_planartifact_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'plans are never changed: % on changes_planartifact is refused', TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'Store another plan; it has another sha256.';
END
$$;
CREATE TRIGGER plan_never_changed BEFORE UPDATE ON changes_planartifact
    FOR EACH ROW EXECUTE FUNCTION changes_planartifact_refuse();
-- 'ALWAYS': also in sessions with session_replication_role = replica, which skip ordinary triggers.
ALTER TABLE changes_planartifact ENABLE ALWAYS TRIGGER plan_never_changed;
"""

BACKWARD = """
DROP TRIGGER plan_never_changed ON changes_planartifact;
DROP FUNCTION changes_planartifact_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("changes", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
