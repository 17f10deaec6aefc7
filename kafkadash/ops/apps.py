from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "kafkadash.ops"
    label = "ops"

    def ready(self) -> None:
        from django.db.models.signals import pre_migrate

        from kafkadash.core.messages import register_messages
        from kafkadash.ops import after_collect  # noqa: F401  connects the receiver
        from kafkadash.ops.messages import OPERATION_MESSAGES
        from kafkadash.ops.old_database import refuse_old_database
        from kafkadash.ops.watch import connect_signals

        register_messages(OPERATION_MESSAGES)
        connect_signals()
        pre_migrate.connect(refuse_old_database, sender=self)
