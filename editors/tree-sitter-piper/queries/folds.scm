[(block) (list) (call) (parameters)] @fold
(comment)+ @fold
(doc_comment)+ @fold
