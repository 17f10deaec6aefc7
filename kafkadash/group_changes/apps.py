from django.apps import AppConfig


class GroupChangesConfig(AppConfig):
    name = "kafkadash.group_changes"
    label = "group_changes"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.group_changes import group_deletion, offset_deletion, reset
        from kafkadash.group_changes.messages import (
            GROUP_CHANGE_ERROR_MESSAGES,
            GROUP_CHANGE_MESSAGES,
            GROUP_CHANGE_TITLES,
            GROUP_CHANGE_WRITERS,
        )

        reset.make_known()
        group_deletion.make_known()
        offset_deletion.make_known()
        register_messages(GROUP_CHANGE_ERROR_MESSAGES)
        register_messages(GROUP_CHANGE_MESSAGES, GROUP_CHANGE_WRITERS)
        register_messages(GROUP_CHANGE_TITLES)
