pir 2 plan
//    ^^^^ error P4151: `plan` is no level of the training DAG
