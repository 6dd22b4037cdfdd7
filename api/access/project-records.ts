import {
  type Checkpoint,
  type Dataset,
  type Job,
  type Model,
  type Page,
  ZerofleetError,
} from '../../contracts/index.js';
import type {
  CheckpointFilter,
  CreateJobInput,
  CreateJobResult,
  DatasetCopyKey,
  FoundCheckpoint,
  IdempotencyInput,
  JobFilter,
  JobStore,
  JobUpdate,
  ModelCopyKey,
  NamedPageRequest,
  PageRequest,
} from '../../state/index.js';
import { notFound } from './found.js';

/** Job store methods that take the id of a job first. */
type MethodOfJob =
  | 'requestPause'
  | 'requestCancel'
  | 'resumeJob'
  | 'requestCheckpoint'
  | 'requestResize'
  | 'retryJob'
  | 'deleteJob'
  | 'waitVersion'
  | 'getCalls'
  | 'countCalls'
  | 'waitCalls'
  | 'listAttempts'
  | 'listCheckpoints';

/** Job store methods that take an id from a client or list records. */
type Guarded = Pick<
  JobStore,
  | MethodOfJob
  | 'createJob'
  | 'getJob'
  | 'listJobs'
  | 'updateJob'
  | 'listProjectCheckpoints'
  | 'findCheckpoint'
  | 'pinCheckpoint'
  | 'deleteCheckpoint'
  | 'holdCheckpoint'
  | 'findCreated'
  | 'getDataset'
  | 'findDatasetCopy'
  | 'listDatasets'
  | 'updateDataset'
  | 'deleteDataset'
  | 'getModel'
  | 'findModelCopy'
  | 'findTokenizerCopy'
  | 'listModels'
  | 'updateModel'
  | 'deleteModel'
>;

/** Methods that already filter by project. */
type CopyFinders = 'findDatasetCopy' | 'findModelCopy' | 'findTokenizerCopy';

/**
 * Project-scoped view of the job store: records of other projects are not found. Handlers use it through
 * `request.records`, so no handler can omit the ownership check.
 *
 * A record never changes its project and an id is never reused, so an ownership check stays valid until the following
 * change.
 */
export class ProjectRecords implements Omit<Guarded, CopyFinders> {
  constructor(
    private readonly store: Guarded & Pick<JobStore, 'projectOfJob'>,
    readonly project: string,
  ) {}

  createJob(input: CreateJobInput): Promise<CreateJobResult> {
    if (input.spec.project === this.project) return this.store.createJob(input);
    throw new ZerofleetError('internal_error', `a job of ${input.spec.project} for ${this.project}`);
  }

  /** The idempotency scope contains the project. */
  findCreated(idempotency: IdempotencyInput): Promise<Job | null> {
    return this.store.findCreated(idempotency);
  }

  async getJob(jobId: string): Promise<Job | null> {
    const job = await this.store.getJob(jobId);
    return job?.spec.project === this.project ? job : null;
  }

  listJobs(filter: JobFilter = {}): Promise<Page<Job>> {
    return this.store.listJobs({ ...filter, project: this.project });
  }

  readonly requestPause = this.ofJob('requestPause');
  readonly requestCancel = this.ofJob('requestCancel');
  readonly resumeJob = this.ofJob('resumeJob');
  readonly requestCheckpoint = this.ofJob('requestCheckpoint');
  readonly requestResize = this.ofJob('requestResize');
  readonly retryJob = this.ofJob('retryJob');
  readonly deleteJob = this.ofJob('deleteJob');
  readonly waitVersion = this.ofJob('waitVersion');
  readonly getCalls = this.ofJob('getCalls');
  readonly countCalls = this.ofJob('countCalls');
  readonly waitCalls = this.ofJob('waitCalls');
  readonly listAttempts = this.ofJob('listAttempts');
  readonly listCheckpoints = this.ofJob('listCheckpoints');

  async updateJob(update: JobUpdate): Promise<Job> {
    await this.requireJob(update.before.id);
    return this.store.updateJob(update);
  }

  listProjectCheckpoints(page?: Omit<CheckpointFilter, 'project'>): Promise<Page<Checkpoint>> {
    return this.store.listProjectCheckpoints({ ...page, project: this.project });
  }

  async findCheckpoint(checkpointId: string): Promise<FoundCheckpoint | null> {
    const found = await this.store.findCheckpoint(checkpointId);
    return found !== null && (await this.hasJob(found.job_id)) ? found : null;
  }

  async pinCheckpoint(checkpointId: string, pinned: boolean): Promise<Checkpoint | null> {
    return (await this.findCheckpoint(checkpointId)) && this.store.pinCheckpoint(checkpointId, pinned);
  }

  async deleteCheckpoint(checkpointId: string): Promise<Checkpoint | null> {
    return (await this.findCheckpoint(checkpointId)) && this.store.deleteCheckpoint(checkpointId);
  }

  async holdCheckpoint(checkpointId: string, holder: string, ttlMs?: number): Promise<boolean> {
    const found = await this.findCheckpoint(checkpointId);
    return found !== null && this.store.holdCheckpoint(checkpointId, holder, ttlMs);
  }

  async getDataset(datasetId: string): Promise<Dataset | null> {
    return this.own(await this.store.getDataset(datasetId));
  }

  async findDatasetCopy(object: DatasetCopyKey): Promise<Dataset | null> {
    return this.own(await this.store.findDatasetCopy(this.project, object));
  }

  listDatasets(page: PageRequest = {}): Promise<Page<Dataset>> {
    return this.store.listDatasets({ ...page, project: this.project });
  }

  async updateDataset(datasetId: string, change: (before: Dataset) => Dataset): Promise<Dataset | null> {
    return (await this.getDataset(datasetId)) && this.store.updateDataset(datasetId, change);
  }

  async deleteDataset(datasetId: string): Promise<boolean> {
    return (await this.getDataset(datasetId)) !== null && this.store.deleteDataset(datasetId);
  }

  async getModel(modelId: string): Promise<Model | null> {
    return this.own(await this.store.getModel(modelId));
  }

  async findModelCopy(folder: ModelCopyKey): Promise<Model | null> {
    return this.own(await this.store.findModelCopy(this.project, folder));
  }

  async findTokenizerCopy(digest: string): Promise<Model | null> {
    return this.own(await this.store.findTokenizerCopy(this.project, digest));
  }

  listModels(page: NamedPageRequest = {}): Promise<Page<Model>> {
    return this.store.listModels({ ...page, project: this.project });
  }

  async updateModel(modelId: string, change: (before: Model) => Model): Promise<Model | null> {
    return (await this.getModel(modelId)) && this.store.updateModel(modelId, change);
  }

  async deleteModel(modelId: string): Promise<boolean> {
    return (await this.getModel(modelId)) !== null && this.store.deleteModel(modelId);
  }

  /** @throws ZerofleetError `job_not_found` */
  async requireJob(jobId: string): Promise<void> {
    if (!(await this.hasJob(jobId))) throw notFound('job', jobId);
  }

  /** Returns a method of the store that takes the id of a job first, for jobs of the project. */
  private ofJob<M extends MethodOfJob>(method: M): Guarded[M] {
    const guarded = async (jobId: string, ...rest: unknown[]) => {
      await this.requireJob(jobId);
      return (this.store[method] as (id: string, ...rest: unknown[]) => unknown)(jobId, ...rest);
    };
    return guarded as Guarded[M];
  }

  private async hasJob(jobId: string): Promise<boolean> {
    return (await this.store.projectOfJob(jobId)) === this.project;
  }

  private own<T extends { project: string }>(record: T | null): T | null {
    return record?.project === this.project ? record : null;
  }
}
