from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0016_open_transactions"),
    ]

    operations = [
        migrations.AddField(
            model_name="throttlestate",
            name="from_znode",
            field=models.BooleanField(
                db_default=False, default=False, help_text="read from ZooKeeper, because the broker was not registered"
            ),
        ),
    ]
