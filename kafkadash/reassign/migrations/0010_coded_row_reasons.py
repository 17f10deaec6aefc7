import kafkadash.reassign.models.execution
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reassign", "0009_broker_absences"),
    ]

    operations = [
        migrations.RemoveField(model_name="move", name="reason"),
        migrations.AddField(
            model_name="move",
            name="reason_code",
            field=models.CharField(
                blank=True, choices=kafkadash.reassign.models.execution.row_reason_choices, max_length=40
            ),
        ),
        migrations.AddField(
            model_name="move",
            name="reason_params",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
