from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("findings", "0010_told_value"),
    ]

    operations = [
        migrations.AddField(
            model_name="judgement",
            name="unknown_kinds",
            field=models.JSONField(help_text="kinds whose absence proved nothing", null=True),
        ),
    ]
