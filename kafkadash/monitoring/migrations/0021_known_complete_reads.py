from typing import Any

from django.db import migrations
from django.db.models import F


def take_over_reads(apps: Any, _editor: Any) -> None:
    """Take reads from before gaps were recorded for complete ones, so that no finding opens about them."""
    runs = apps.get_model("monitoring", "CollectorRun").objects.filter(complete_at=None)
    runs.update(complete_at=F("succeeded_at"))


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0020_complete_reads")]
    operations = [migrations.RunPython(take_over_reads, migrations.RunPython.noop)]
