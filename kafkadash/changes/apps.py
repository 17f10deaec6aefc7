from django.apps import AppConfig


class ChangesConfig(AppConfig):
    name = "kafkadash.changes"
    label = "changes"

    def ready(self) -> None:
        from kafkadash.changes.messages import CHANGE_MESSAGES
        from kafkadash.changes.workflow_messages import WORKFLOW_MESSAGES
        from kafkadash.domain.messages import register_messages

        register_messages(CHANGE_MESSAGES)
        register_messages(WORKFLOW_MESSAGES)
