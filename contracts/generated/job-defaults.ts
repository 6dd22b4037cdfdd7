// Generated from contracts/openapi/ by `npm run generate`; change it there.
import type { components } from './openapi.js';

type Schemas = components['schemas'];

/** Values of absent fields, by the schema of their section. */
export const DEFAULTS = {
  JobSpec: {"priority":0,"integrations":[]} satisfies Partial<Schemas['JobSpec']>,
  InitFromSpec: {"restore":"weights"} satisfies Partial<Schemas['InitFromSpec']>,
  DataSpec: {"tokenizer":null,"chat_template":null,"parse_special_tokens":false,"template_date":null,"validation_fraction":0,"seed":1} satisfies Partial<Schemas['DataSpec']>,
  ChatSpec: {"turns":"together","reasoning":"learn"} satisfies Partial<Schemas['ChatSpec']>,
  TrainSpec: {"sequence_length":128,"global_batch_size":16,"seed":1,"gradient_clipping":1,"gradient_clipping_norm":"l2","precision":"bf16","max_skipped_share":0.5,"overrides":[],"activation_checkpointing":false} satisfies Partial<Schemas['TrainSpec']>,
  OptimizerSpec: {"type":"adamw","lr":0.001,"param_groups":[]} satisfies Partial<Schemas['OptimizerSpec']>,
  ParamGroupSpec: {"frozen":false} satisfies Partial<Schemas['ParamGroupSpec']>,
  LrScheduleSpec: {"type":"cosine","warmup_steps":0,"warmup_type":"linear","warmup_start_lr":0,"min_lr":0} satisfies Partial<Schemas['LrScheduleSpec']>,
  LossScaleSpec: {"max_skipped_steps":100} satisfies Partial<Schemas['LossScaleSpec']>,
  EmaSpec: {"decay":0.999} satisfies Partial<Schemas['EmaSpec']>,
  EvaluationSpec: {"every_steps":100,"datasets":[]} satisfies Partial<Schemas['EvaluationSpec']>,
  EarlyStoppingSpec: {"min_delta":0} satisfies Partial<Schemas['EarlyStoppingSpec']>,
  AdapterSpec: {"type":"lora","rank":16,"rank_stabilized":false,"dropout":0,"target_modules":"all-linear","modules_to_save":[],"init":"kaiming_uniform"} satisfies Partial<Schemas['AdapterSpec']>,
  ScoreModelGrader: {"range":[0,1]} satisfies Partial<Schemas['ScoreModelGrader']>,
  GraderSampling: {"max_completions_tokens":1024,"temperature":0,"top_p":1,"seed":1} satisfies Partial<Schemas['GraderSampling']>,
  SessionSpec: {"idle_seconds":900} satisfies Partial<Schemas['SessionSpec']>,
  ZeroSpec: {"stage":2,"lane_group":1,"grad_accum_dtype":"fp32","master_dtype":"fp32","gradient_predivide_factor":1,"offload":"none","expert_parallel_size":1} satisfies Partial<Schemas['ZeroSpec']>,
  ResourcesSpec: {"pool":"default"} satisfies Partial<Schemas['ResourcesSpec']>,
  RanksSpec: {"min":1,"preferred":1} satisfies Partial<Schemas['RanksSpec']>,
  CheckpointSpec: {"on_busy":"skip"} satisfies Partial<Schemas['CheckpointSpec']>,
  KeepSpec: {"last":3,"best":0} satisfies Partial<Schemas['KeepSpec']>,
  SamplesSpec: {"max_tokens":64,"temperature":0,"top_k":0,"top_p":1,"seed":1} satisfies Partial<Schemas['SamplesSpec']>,
  LimitsSpec: {"on_limit":"pause"} satisfies Partial<Schemas['LimitsSpec']>,
  RetrySpec: {"max_errors":3,"preemptions":null} satisfies Partial<Schemas['RetrySpec']>,
  ExportSpec: {"format":"safetensors","dtype":"bf16","weights":"trained","tensorboard":false} satisfies Partial<Schemas['ExportSpec']>,
  NotifySpec: {"webhooks":[]} satisfies Partial<Schemas['NotifySpec']>,
  SampleCall: {"n":1,"temperature":1,"top_p":1,"top_k":0,"seed":1,"stop_tokens":[],"stop_texts":[]} satisfies Partial<Schemas['SampleCall']>,
  LoadStateCall: {"optimizer":true} satisfies Partial<Schemas['LoadStateCall']>,
};

/** Fields that only some types of a section have, with the values of absent ones: by the schema of the section and its type. */
export const DEFAULTS_BY_TYPE = {
  OptimizerSpec: {"adamw":{"weight_decay":0.1,"betas":[0.9,0.95],"eps":1e-8},"adam":{"weight_decay":0,"betas":[0.9,0.95],"eps":1e-8},"lamb":{"weight_decay":0.1,"betas":[0.9,0.95],"eps":0.000001,"min_coeff":0.01,"max_coeff":10,"bias_correction":"update"},"lion":{"weight_decay":0.1,"betas":[0.9,0.99]},"adagrad":{"weight_decay":0,"eps":1e-10,"lr_decay":0,"initial_accumulator_value":0},"sgd":{"weight_decay":0,"momentum":0.9,"dampening":0,"nesterov":false}} satisfies Record<string, Partial<Schemas['OptimizerSpec']>>,
  LossScaleSpec: {"none":{},"static":{"initial_scale":65536},"dynamic":{"initial_scale":65536,"window":1000,"hysteresis":2,"consecutive_hysteresis":false,"min_scale":1}} satisfies Record<string, Partial<Schemas['LossScaleSpec']>>,
  ObjectiveSpec: {"sft":{},"dpo":{"beta":0.1,"label_smoothing":0,"reference":"initial"},"ipo":{"beta":0.1,"reference":"initial"},"orpo":{"beta":0.1},"kto":{"beta":0.1,"desirable_weight":1,"undesirable_weight":1,"reference":"initial"},"simpo":{"beta":2,"gamma":1},"grpo":{"prompts_per_step":16,"group_size":8,"temperature":1,"top_p":1,"top_k":0,"num_iterations":1,"loss":{"type":"ppo"},"loss_type":"dapo","scale_rewards":"group","max_failed_share":0.1}} satisfies Record<string, Partial<Schemas['ObjectiveSpec']>>,
  PolicyLoss: {"importance_sampling":{"beta":0},"ppo":{"clip_low":0.2,"clip_high":0.2,"beta":0},"cispo":{"clip_low":0.2,"clip_high":0.2,"beta":0}} satisfies Record<string, Partial<Schemas['PolicyLoss']>>,
  PassLoss: {"cross_entropy":{},"importance_sampling":{"beta":0},"ppo":{"clip_low":0.2,"clip_high":0.2,"beta":0},"cispo":{"clip_low":0.2,"clip_high":0.2,"beta":0},"dpo":{"beta":0.1}} satisfies Record<string, Partial<Schemas['PassLoss']>>,
};

/** Values of the schemas that list theirs. */
export const VALUES = {
  JobState: ["queued","provisioning","starting","running","recovering","pausing","paused","cancelling","cancelled","succeeded","failed"],
  PresetName: ["llama-tiny","llama-small","gpt2","mixtral-tiny"],
  Quantization: ["nf4","int8"],
  Restore: ["full","weights","weights_16bit","continue"],
  DatasetFormat: ["text","jsonl","tokens"],
  Precision: ["bf16","fp16","fp32"],
  ExportWeights: ["trained","ema"],
  FailureCategory: ["user","data","oom","diverged","hardware","preempted","capacity","limit","internal"],
  ModelType: ["gpt2","llama","mistral","qwen2","qwen3","mixtral","smollm3","granite","olmo2","olmo3","qwen3_moe","gemma3_text","gemma2","phi3","glm4","gpt_neox","glm","qwen2_moe"],
  EstimateDevice: ["cpu","cuda"],
  InstructionSet: ["generic","avx2","avx512","avx512bf16"],
  TensorState: ["master","exp_avg","exp_avg_sq","momentum_buffer","sum","ema"],
  CallType: ["forward_backward","forward","optim_step","sample","save_state","load_state","finish"],
  CallState: ["pending","done"],
  SweepState: ["running","paused","succeeded","failed","cancelled"],
  SweepMethod: ["grid","random","successive_halving"],
  SweepRunState: ["waiting","running","held","stopped","succeeded","failed","cancelled"],
  ExportFormat: ["safetensors","peft","peft_folded","gguf","gguf_lora","deepspeed_universal"],
  ExportDtype: ["bf16","fp16","fp32","q8_0"],
  Scope: ["jobs:read","jobs:write","datasets","models","admin","operator"],
  WebhookJobs: ["all","named"],
} as const;
