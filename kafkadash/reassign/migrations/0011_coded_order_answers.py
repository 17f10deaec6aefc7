from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reassign", "0010_coded_row_reasons"),
    ]

    operations = [
        migrations.RemoveField(model_name="order", name="answer"),
        migrations.AddField(
            model_name="order",
            name="answer_code",
            field=models.CharField(blank=True, max_length=40),
        ),
        migrations.AddField(
            model_name="order",
            name="answer_params",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
