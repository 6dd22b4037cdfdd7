/** The control plane's database on Redis: jobs, pools, records, access and webhooks. Other modules import this file. */
export type { ApiKeys } from './access/api-keys.js';
export type { Principal } from './access/look-ups.js';
export type { Principals } from './access/principals.js';
export { type Projects, storedBytes } from './access/projects.js';
export { type BrowserSession, SESSION_MS, type Sessions, type SignInBy } from './access/sessions.js';
export { SHARE_TOKEN } from './access/shares.js';
export type { UserInput } from './access/users.js';
export type { PageRequest } from './core/paging.js';
export type { Unsubscribe } from './core/subscriptions.js';
export type { ClaimedForward, ForwardEvent, ForwardSave } from './integrations/forwards.js';
export { connectJobStore, type JobStorePort, openJobStore } from './job-store.js';
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
export type { DatasetCopyKey, DatasetRecords, ModelCopyKey, ModelRecords } from './records/records-port.js';
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
  putAccepted,
  putDatasetDocument,
  putDesired,
  putDocument,
  putModelDocument,
  putQuotaDocument,
  putResult,
  putSpec,
  ResultDocument,
  readGiven,
  SpecDocument,
} from './records/stored-documents.js';
export type { SweepGuard } from './records/sweep-port.js';
export type { UploadSpace } from './records/uploads-port.js';
export { IDEMPOTENCY_TTL_MS, idempotencyEntry } from './repeats/idempotency.js';
export type {
  BegunRequest,
  IdempotencyInput,
  KeyedRequest,
  RequestRepeats,
  StoredReply,
} from './repeats/repeats-port.js';
export type { SampleRequests, TakenSample } from './samples/samples-port.js';
export { metricsBetween } from './streams/metrics-between.js';
export type { OutboxEntry } from './streams/outbox-port.js';
export { startOutboxRelay } from './streams/outbox-relay.js';
export type { JobStreams, StreamKind } from './streams/streams-port.js';
export { startWebhookRelay } from './webhooks/webhook-relay.js';
export type {
  DeliveryRound,
  NewDelivery,
  WebhookEvent,
  WebhookOutboxEntry,
  WebhookSecret,
  Webhooks,
  WebhookTarget,
} from './webhooks/webhooks-port.js';
