"""Audit events are written once: the database itself refuses to change or remove one."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are append-only: % on accounts_auditevent is refused', TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'Write a new audit event that says what was wrong with the old one.';
END
$$;
CREATE TRIGGER audit_append_only_rows BEFORE UPDATE OR DELETE ON accounts_auditevent
    FOR EACH ROW EXECUTE FUNCTION accounts_auditevent_refuse();
CREATE TRIGGER audit_append_only_table BEFORE TRUNCATE ON accounts_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_auditevent_refuse();
-- 'ALWAYS': also in sessions with session_replication_role = replica, which skip ordinary triggers.
ALTER TABLE accounts_auditevent ENABLE ALWAYS TRIGGER audit_append_only_rows;
ALTER TABLE accounts_auditevent ENABLE ALWAYS TRIGGER audit_append_only_table;
"""

BACKWARD = """
DROP TRIGGER audit_append_only_table ON accounts_auditevent;
DROP TRIGGER audit_append_only_rows ON accounts_auditevent;
DROP FUNCTION accounts_auditevent_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
