/** The control plane's database on Redis: jobs, pools, records, access and webhooks. Other modules import this file. */
export type { ApiKeys } from './access/api-keys.js';
export type { HubTokens } from './access/hub-tokens.js';
export type { Principal } from './access/look-ups.js';
export type { Principals } from './access/principals.js';
export { type Projects, storedBytes } from './access/projects.js';
export { type BrowserSession, SESSION_MS, type Sessions, type SignInBy } from './access/sessions.js';
export { SHARE_TOKEN } from './access/shares.js';
export type { UserInput } from './access/users.js';
export { callCounters, countCallsAnew } from './calls/call-counters.js';
export type { CallCount, CallCounters, SessionCalls } from './calls/calls.js';
export type { NamedPageRequest, PageRequest } from './core/paging.js';
export type { Unsubscribe } from './core/subscriptions.js';
export type { CheckpointEdits } from './edits/edits.js';
export type { ClaimedForward, ForwardEvent, ForwardSave } from './integrations/forwards.js';
export { connectJobStore, type JobStore, openJobStore } from './job-store.js';
export type { ClaimResult, GrantedClaim, JobAttempts, ReleaseOptions } from './jobs/attempts.js';
export type { Condition, DeletedCheckpoint, DeletedJob, JobChanges, JobUpdate } from './jobs/changes.js';
export { type Control, countRanks, type Desired } from './jobs/control.js';
export type {
  EventInput,
  JobExecution,
  LogInput,
  MetricInput,
  TransitionOptions,
  TransitionPatch,
} from './jobs/execution.js';
export { type CheckpointHolds, DOWNLOAD_HOLDER } from './jobs/holds.js';
export type { JobFilter } from './jobs/job-list.js';
export { initialJob, progressOf } from './jobs/record.js';
export {
  type CheckpointFilter,
  type CreateJobInput,
  type CreateJobResult,
  checkpointPosition,
  type FoundCheckpoint,
  type JobRequests,
} from './jobs/requests.js';
export type { JobRestore, RestoredJob } from './jobs/restore.js';
export type { PoolRecord, PoolSlots, WorkerAnnouncement, WorkerGpu, WorkerRecord } from './pools/pools.js';
export type { JobDemandRecord, Scaling, WorkerUse } from './pools/scaling.js';
export type { Scheduling, WorkerSlots } from './pools/scheduling.js';
export type { SealedWorld, WorldMember, WorldPlan, WorldRendezvous } from './pools/worlds.js';
export type { DatasetCopyKey, DatasetRecords } from './records/datasets.js';
export type { GarbageGuard } from './records/garbage-guard.js';
export type { ModelCopyKey, ModelRecords } from './records/models.js';
export {
  DesiredDocument,
  keepDesired,
  keepSpec,
  parseDataset,
  parseDesired,
  parseModel,
  parseQuota,
  parseResult,
  parser,
  parseSpec,
  parseSweep,
  parseSweepRuns,
  putAccepted,
  putDatasetDocument,
  putDesired,
  putDocument,
  putModelDocument,
  putQuotaDocument,
  putResult,
  putSpec,
  putSweepDocument,
  putSweepRuns,
  ResultDocument,
  readGiven,
  SpecDocument,
} from './records/stored-documents.js';
export type { StoredSweep, SweepRecords, SweepTask } from './records/sweeps.js';
export type { UploadSpace } from './records/uploads.js';
export { IDEMPOTENCY_TTL_MS, type IdempotencyInput, idempotencyEntry } from './repeats/idempotency.js';
export type { BegunRequest, KeyedRequest, RequestRepeats, StoredReply } from './repeats/repeats.js';
export type { SampleRequests, TakenSample } from './samples/samples.js';
export {
  METRICS_PER_BLOCK,
  type MetricBlock,
  type SeqRange,
  type StepRange,
} from './streams/metric-blocks.js';
export { metricsBetween } from './streams/metrics-between.js';
export { type OutboxEntry, startOutboxRelay } from './streams/outbox-relay.js';
export type { JobStreams, StreamKind } from './streams/streams.js';
export type { DeliveryRound, NewDelivery } from './webhooks/webhook-deliveries.js';
export { startWebhookRelay, type WebhookEvent, type WebhookOutboxEntry } from './webhooks/webhook-relay.js';
export { enabledTarget, type WebhookSecret, type Webhooks, type WebhookTarget } from './webhooks/webhooks.js';
