from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reassign", "0006_ledger_of_lost_calls"),
    ]

    operations = [
        migrations.AddField(
            model_name="planreport",
            name="generate_bytes",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="planreport",
            name="proof",
            field=models.JSONField(null=True),
        ),
    ]
