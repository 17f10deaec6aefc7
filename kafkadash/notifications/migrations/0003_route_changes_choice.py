from django.db import migrations, models


class Migration(migrations.Migration):
    """A route sends no changes, those that wait for approval, or all. One statement alters the column and its rows."""

    dependencies = [("notifications", "0002_incidents")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE notifications_notificationroute"
            " ALTER COLUMN changes TYPE varchar(16) USING CASE WHEN changes THEN 'all' ELSE 'none' END,"
            " ALTER COLUMN changes SET DEFAULT 'none'",
            "ALTER TABLE notifications_notificationroute"
            " ALTER COLUMN changes DROP DEFAULT,"
            " ALTER COLUMN changes TYPE boolean USING changes <> 'none'",
            state_operations=[
                migrations.AlterField(
                    model_name="notificationroute",
                    name="changes",
                    field=models.CharField(db_default="none", default="none", max_length=16),
                ),
            ],
        ),
    ]
