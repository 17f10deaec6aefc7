from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0002_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="by_hour",
            field=models.JSONField(help_text="bytes in per second by hour of the week", null=True),
        ),
    ]
