from django.urls import path

from kafkadash.reassign import downloads, plan_views, report_views, verify_views, wizard_views
from kafkadash.reassign.run import ending_views, ledger_views
from kafkadash.reassign.run import views as run_views

app_name = "reassign"

urlpatterns = [
    path("changes/<int:number>/kafka.json", downloads.kafka_json, name="kafka_json"),
    path("changes/<int:number>/rollback.json", downloads.rollback_json, name="rollback_json"),
    path("changes/<int:number>/topics/<str:topic>/", report_views.topic_rows, name="topic_rows"),
    path("changes/<int:number>/run/cancel/", ending_views.run_cancel, name="run_cancel"),
    path("changes/<int:number>/run/give-up/", ending_views.run_give_up, name="run_give_up"),
    path("changes/<int:number>/run/ledger/", ledger_views.run_ledger, name="run_ledger"),
    path("changes/<int:number>/report/", ending_views.report, name="report"),
    path("changes/<int:number>/report/report.md", ending_views.report_markdown, name="report_markdown"),
    path("changes/<int:number>/report/report.json", ending_views.report_json, name="report_json"),
    path("changes/<int:number>/rollback/", ending_views.rollback, name="rollback"),
    path("changes/<int:number>/run/", run_views.run, name="run"),
    path("changes/<int:number>/run/moves/", run_views.run_moves, name="run_moves"),
    path("changes/<int:number>/run/chart/", run_views.run_chart, name="run_chart"),
    path("changes/<int:number>/pause/", run_views.run_pause, name="run_pause"),
    path("changes/<int:number>/resume/", run_views.run_resume, name="run_resume"),
    path("changes/<int:number>/run/throttle/", run_views.run_throttle, name="run_throttle"),
    path("changes/<int:number>/run/parallel/", run_views.run_parallel, name="run_parallel"),
    path("changes/<int:number>/run/row/", run_views.run_row, name="run_row"),
    path("changes/<int:number>/run/replan/", run_views.run_replan, name="run_replan"),
    path("changes/<int:number>/run/foreign/", run_views.run_foreign, name="run_foreign"),
    path("clusters/<slug:slug>/verify/", verify_views.verify, name="verify"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/", verify_views.verification, name="verification"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/again/", verify_views.verify_again, name="verify_again"),
    path("clusters/<slug:slug>/verify/<uuid:verify_id>/stop/", verify_views.verify_stop, name="verify_stop"),
    path("changes/new/", wizard_views.new, name="new"),
    path("changes/<int:number>/draft/what/", wizard_views.what, name="what"),
    path("changes/<int:number>/draft/what/topics/", wizard_views.topic_count, name="topic_count"),
    path("changes/<int:number>/draft/limits/", wizard_views.limits, name="limits"),
    path("changes/<int:number>/draft/plan/", plan_views.plan, name="plan"),
    path("changes/<int:number>/draft/plan/stop/", plan_views.stop, name="stop"),
    path("changes/<int:number>/draft/plan/throttle/", plan_views.throttle, name="throttle"),
    path("changes/<int:number>/draft/why/", wizard_views.why, name="why"),
]
