/** Names of the JSON shapes of the HTTP contract. Types only, so that a client can import them without code. */
import type { components, operations, webhooks } from './generated/openapi.js';

type Schemas = components['schemas'];

export type JobSpec = Schemas['JobSpec'];
export type CheckpointVerdict = Schemas['CheckpointVerdict'];
export type ResolvedJobSpec = Schemas['ResolvedJobSpec'];
/** Document with its number of steps. */
export type TrainableJobSpec = ResolvedJobSpec & {
  train: { steps: number } | Required<Pick<ResolvedJobSpec['train'], 'session'>>;
};
export type Integration = Schemas['Integration'];
export type ModelConfig = Schemas['ModelConfig'];
export type ResolvedModelConfig = Schemas['ResolvedModelConfig'];
export type RopeScaling = Schemas['RopeScaling'];
export type ResolvedParamGroup = Schemas['ResolvedParamGroup'];
export type Precision = Schemas['Precision'];
export type ResumeRequest = Schemas['ResumeRequest'];
export type Estimate = Schemas['Estimate'];
export type StringCheckGrader = Schemas['StringCheckGrader'];
export type TextSimilarityGrader = Schemas['TextSimilarityGrader'];
export type ScoreModelGrader = Schemas['ScoreModelGrader'];
export type PythonGrader = Schemas['PythonGrader'];
export type WebhookGrader = Schemas['WebhookGrader'];
export type SingleGrader =
  | StringCheckGrader
  | TextSimilarityGrader
  | ScoreModelGrader
  | PythonGrader
  | WebhookGrader;
type MultiGrader = Omit<Schemas['MultiGrader'], 'graders'> & { graders: Record<string, SingleGrader> };
/** A grader that fits the schema `Grader`. */
export type Grader = SingleGrader | MultiGrader;
export type Grade = Schemas['Grade'];
export type GradeError = Schemas['GradeError'];
export type DataPreview = Schemas['DataPreview'];
export type InstructionSet = Schemas['InstructionSet'];

export type Job = Schemas['Job'];
export type DryRun = Schemas['DryRun'];
export type Attempt = Schemas['Attempt'];
export type Generation = Schemas['Generation'];
export type JobPatch = Schemas['JobPatch'];
export type JobState = Schemas['JobState'];
export type StateChange = Schemas['StateChange'];
export type JobProgress = Schemas['Progress'];
/** Progress without what follows from the document. */
export type ReportedProgress = Omit<JobProgress, 'total_steps' | 'percent'>;
export type Checkpoint = Schemas['Checkpoint'];
export type ChatMessage = Schemas['ChatMessage'];
export type SampleRequest = Schemas['SampleRequest'];
export type Sample = Schemas['Sample'];
export type SampleChoice = Schemas['SampleChoice'];
export type SampledToken = Schemas['SampledToken'];
export type Tool = Schemas['Tool'];
export type ToolCall = Schemas['ToolCall'];
/** Next part of a call. The first delta has all fields, later ones have more of the arguments. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: ToolCall['type'];
  function: { name?: string; arguments: string };
}
/** Next part of an answer. */
export type SampleDelta = Pick<SampleChoice, 'index' | 'text' | 'logprobs'> & {
  tool_calls?: ToolCallDelta[];
};
export type JobExport = Schemas['ExportResult'];
export type ExportRequest = Schemas['ExportRequest'];
export type CheckpointExport = Schemas['CheckpointExport'];
export type CheckpointTensor = Schemas['CheckpointTensor'];
export type TensorEdit = Schemas['TensorEdit'];
export type TensorState = Schemas['TensorState'];
export type CheckpointTensorPage = Schemas['CheckpointTensorPage'];
export type ExportFile = Schemas['ExportFile'];
export type DownloadRequest = Schemas['DownloadRequest'];
export type Download = Schemas['Download'];
export type DownloadFile = Schemas['DownloadFile'];
export type JobFailure = Schemas['Failure'];
export type FailureCategory = Schemas['FailureCategory'];
export type Dataset = Schemas['Dataset'];
export type DatasetPatch = Schemas['DatasetPatch'];
export type Upload = Schemas['Upload'];
export type UploadPart = Schemas['UploadPart'];
export type UploadUrls = Schemas['UploadUrls'];
export type UploadUrlsRequest = Schemas['UploadUrlsRequest'];
export type UploadRequest = Schemas['UploadRequest'];
export type Model = Schemas['Model'];
export type ModelPatch = Schemas['ModelPatch'];
export type ApiKey = Schemas['ApiKey'];
export type ApiKeyPatch = Schemas['ApiKeyPatch'];
export type NewApiKey = Schemas['NewApiKey'];
export type AuditEntry = Schemas['AuditEntry'];
export type Me = Schemas['Me'];
export type SignInCode = Schemas['SignInCode'];
export type Session = Schemas['Session'];
export type Share = Schemas['Share'];
export type SignInMethods = Schemas['SignInMethods'];
export type User = Schemas['User'];
export type SignedInUser = Schemas['SignedInUser'];
export type NewShare = Schemas['NewShare'];
export type ShareRequest = Schemas['ShareRequest'];
export type Project = Schemas['Project'];
export type ProjectQuota = Schemas['ProjectQuota'];
export type HubToken = Schemas['HubToken'];
export type ProjectUsage = Schemas['ProjectUsage'];
export type DayUsage = Schemas['DayUsage'];
export type ApiKeyRequest = Schemas['ApiKeyRequest'];
export type Pool = Schemas['Pool'];
export type Worker = Schemas['Worker'];
export type LaunchProblem = Schemas['LaunchProblem'];
export type PoolPod = Schemas['PoolPod'];

export type JobEvent = Schemas['JobEvent'];
export type JobMetric = Schemas['JobMetric'];
export type SystemUse = Schemas['SystemUse'];
export type StepSeconds = Schemas['StepSeconds'];
export type PreferenceMetrics = Schemas['PreferenceMetrics'];
export type TrustRatios = Schemas['TrustRatios'];
export type JobLog = Schemas['JobLog'];
/** One entry of a job's stream: events, metrics and log lines share one increasing `seq`. */
export type StreamEntry = JobEvent | JobMetric | JobLog;

/** A call of a session as a client sends it. */
export type Call = Schemas['Call'];
/** A call in the log, with every field. */
export type StoredCall = Schemas['StoredCall'];
export type CallType = Schemas['CallType'];
export type PassCall = Schemas['PassCall'];
export type PassLoss = Schemas['PassLoss'];
export type CallResult = Schemas['CallResult'];
export type SampledRow = Schemas['SampledRow'];
export type Rollout = Schemas['Rollout'];
export type RolloutSample = Schemas['RolloutSample'];
export type CallReceipt = Schemas['CallReceipt'];
export type CallAnswer = Schemas['CallAnswer'];
export type CallSummary = Schemas['CallSummary'];

export type SweepSpec = Schemas['SweepSpec'];
export type SweepRange = Schemas['SweepRange'];
export type SweepValue = Schemas['SweepValue'];
export type SweepPlan = Schemas['SweepPlan'];
export type SweepRun = Schemas['SweepRun'];
export type SweepState = Schemas['SweepState'];
export type Sweep = Schemas['Sweep'];

export type WebhookSpec = Schemas['WebhookSpec'];
export type WebhookPatch = Schemas['WebhookPatch'];
export type Webhook = Schemas['Webhook'];
export type WebhookWithSecret = Schemas['WebhookWithSecret'];
type SentEvent = webhooks['jobEvent']['post'];
export type WebhookMessage = SentEvent['requestBody']['content']['application/json'];
export type WebhookHeaders = SentEvent['parameters']['header'];
export type Delivery = Schemas['Delivery'];
export type DeliveryAttempt = Schemas['DeliveryAttempt'];

export type Problem = Schemas['Problem'];
export type FieldError = Schemas['FieldError'];
export type Warning = Schemas['Warning'];
export type Health = Schemas['Health'];
export type Readiness = Schemas['Readiness'];
export type ReadinessCheck = Schemas['ReadinessCheck'];

/** The name of an operation of the HTTP contract. */
export type OperationId = keyof operations;

/** A page of a list: pass `next_cursor` as `after` to get the next page. */
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

export type Scope = Schemas['Scope'];
