//! Servers that run models on one's own machines: Ollama, llama.cpp, LM Studio, vLLM, SGLang, TGI.

use super::super::Kind;
use super::super::facts::Overrides;
use super::super::rule::Rule;
use super::super::{ErrorSeverity, RecoveryAction};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "local_overflow",
        kind: &Kind::ContextOverflow,
        rank: 88,
        phrases: &[
            "prompt is too big*",
            "compared to kv size",
            "cannot truncate prompt*",
            "tokens to keep from the initial prompt",
            "longer than the maximum model length",
            "exceeds the maximum model length",
            "exceeds the maximum allowed length",
            "exceeds max_model_len",
            "max_model_len",
            "max_seq_len",
            "kv cache is full",
            "unable to find slot in kv cache",
            "exceeds the model's maximum*",
            "larger than the maximum sequence length",
            "sequence length is longer than*",
            "prompt length exceeds*",
            "prompt exceeds*",
            "longer than the model's context*",
            "model's maximum prompt*",
        ],
        unless: &["credits", "gpu_memory_utilization", "increase*gpu*", "number of gpu*"],
        yes: "Input prompt is too big compared to KV size. Please try increasing KV size.",
        no: "the prompt is big",
        ..Rule::BASE
    },
    Rule {
        name: "engine_dead",
        kind: &Kind::ServerError,
        rank: 80,
        phrases: &[
            "enginedeaderror",
            "enginecore encountered*",
            "asyncenginedeaderror",
            "background loop has errored*",
            "background loop is stopped*",
            "engine loop is not running",
            "engine is dead",
            "failed to decode the batch",
            "failed to process prompt",
        ],
        over: Overrides {
            retryable: Some(false),
            severity: Some(ErrorSeverity::High),
            action: Some(RecoveryAction::Degrade),
            ..Overrides::NONE
        },
        yes: "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
        no: "the engine was started",
        ..Rule::BASE
    },
    Rule {
        name: "local_model_missing",
        kind: &Kind::ModelNotFound,
        rank: 82,
        phrases: &[
            "no models loaded",
            "no model loaded",
            "model unloaded",
            "pull model manifest*",
            "model is not loaded",
            "model not loaded",
            "no lora*adapter*",
            "model_not_loaded",
        ],
        yes: "No models loaded. Please load a model in the developer page or use the `lms load` command.",
        no: "no modules loaded",
        ..Rule::BASE
    },
    Rule {
        name: "local_load_failed",
        kind: &Kind::ServerError,
        rank: 70,
        phrases: &[
            "failed to load model*",
            "error loading model*",
            "unable to load model*",
            "model failed to load*",
            "model has crashed*",
            "model runner has unexpectedly stopped*",
            "compute error",
            "cuda error*",
            "hip error*",
            "metal error*",
            "ggml_assert*",
        ],
        over: Overrides {
            retryable: Some(false),
            severity: Some(ErrorSeverity::High),
            action: Some(RecoveryAction::Degrade),
            ..Overrides::NONE
        },
        unless: &["out of memory", "outofmemory*", "insufficient system resources", "exited with*", "signal: killed"],
        yes: "Error loading model. (Exit code: null)",
        no: "the model was loaded",
        ..Rule::BASE
    },
    Rule {
        name: "local_overload",
        kind: &Kind::Overloaded,
        rank: 92,
        phrases: &["request queue is full", "queue is full", "no slot available", "slot unavailable", "queue full"],
        also: &["request*", "slot*", "503", "429", "server*"],
        yes: "The request queue is full.",
        no: "the queue was emptied",
        ..Rule::BASE
    },
    Rule {
        name: "local_memory",
        kind: &Kind::OutOfMemory,
        rank: 88,
        phrases: &[
            "insufficient system resources",
            "no available memory for the cache blocks",
            "failed to allocate*buffer*",
            "unable to allocate*",
            "cudaerrormemoryallocation",
            "cublas_status_alloc_failed",
            "larger than the available*memory*",
        ],
        yes: "Model loading was stopped due to insufficient system resources.",
        no: "system resources are plenty",
        ..Rule::BASE
    },
];
