from django.db import migrations, models

import kafkadash.reassign.models.execution

CHANGED = ("blocked", "brake", "error")
CODE = models.CharField(
    blank=True, choices=kafkadash.reassign.models.execution.run_reason_choices, default="", max_length=40
)


class Migration(migrations.Migration):
    dependencies = [
        ("reassign", "0011_coded_order_answers"),
    ]

    operations = [
        *(migrations.RemoveField("execution", name) for name in (*CHANGED, "held")),
        *(migrations.AddField("execution", f"{name}_code", CODE.clone(), preserve_default=False) for name in CHANGED),
        *(
            migrations.AddField("execution", f"{name}_params", models.JSONField(blank=True, default=dict))
            for name in CHANGED
        ),
        migrations.AddField(
            "execution", "held", models.JSONField(blank=True, default=list, help_text="packed reasons")
        ),
    ]
