/** The port of projects: quotas, current use and daily usage. Daily usage is in Redis only; quotas are in the object store as well. */
import type { DayUsage, JobState, ProjectQuota } from '../../contracts/index.js';

/** Resources that a project uses now. */
export interface ProjectUse {
  jobs: Record<JobState, number>;
  /** Sum of the ranks requested by jobs that are neither final nor paused. */
  ranks: number;
  dataset_bytes: number;
  model_bytes: number;
  checkpoint_bytes: number;
  /** Bytes reserved for incomplete uploads. */
  upload_bytes: number;
}

/** Total bytes that count as storage. */
export function storedBytes({
  dataset_bytes,
  model_bytes,
  checkpoint_bytes,
  upload_bytes,
}: ProjectUse): number {
  return dataset_bytes + model_bytes + checkpoint_bytes + upload_bytes;
}

export interface Projects {
  /** Returns the names of all projects that have or had records, sorted, including 'default'. */
  listProjects(): Promise<string[]>;
  /** Returns the quota; null fields are unlimited. */
  getQuota(project: string): Promise<ProjectQuota>;
  /** Sets the quota. Existing resources stay, even above the new quota. The project exists from then on. */
  putQuota(project: string, quota: ProjectQuota): Promise<void>;
  getUse(project: string): Promise<ProjectUse>;
  /** Returns one entry per day from `from` to `to` (`YYYY-MM-DD`); days are kept for 400 days. */
  getUsage(project: string, from: string, to: string): Promise<DayUsage[]>;
}
