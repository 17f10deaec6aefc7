from django.urls import path

from kafkadash.planning import downloads, finish, review, wizard
from kafkadash.planning.topic_form import show_chosen_topics

app_name = "planning"

urlpatterns = [
    path("changes/<int:number>/kafka.json", downloads.kafka_json, name="kafka_json"),
    path("changes/<int:number>/rollback.json", downloads.rollback_json, name="rollback_json"),
    path("changes/<int:number>/topics/<str:topic>/", review.topic_rows, name="topic_rows"),
    path("clusters/<slug:slug>/topics-chosen/", show_chosen_topics, name="topics_chosen"),
    path(
        "clusters/<slug:slug>/reassignments/<slug:public_id>/finish/",
        finish.finish_reassignment,
        name="finish_reassignment",
    ),
    path("changes/new/", wizard.new, name="new"),
    path("changes/<int:number>/draft/what/", wizard.what, name="what"),
    path("changes/<int:number>/draft/what/topics/", wizard.topic_count, name="topic_count"),
    path("changes/<int:number>/draft/limits/", wizard.limits, name="limits"),
    path("changes/<int:number>/draft/plan/", wizard.plan, name="plan"),
    path("changes/<int:number>/draft/plan/stop/", wizard.stop, name="stop"),
    path("changes/<int:number>/draft/plan/with/", wizard.plan_with, name="plan_with"),
    path("changes/<int:number>/draft/plan/throttle/", wizard.throttle, name="throttle"),
    path("changes/<int:number>/draft/why/", wizard.why, name="why"),
]
