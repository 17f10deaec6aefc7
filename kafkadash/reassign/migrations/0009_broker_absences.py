from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reassign", "0008_missing_rates"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="absences",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
