/**
 * The port of projects: what they may use, what they use, and what they have used. What they have used is in Redis only; their limits
 * are in the object store as well.
 */
import type { DayUsage, JobState, ProjectQuota } from '../../contracts/index.js';

/** What a project has now. */
export interface ProjectUse {
  jobs: Record<JobState, number>;
  /** That jobs which have not ended, and are not paused, ask for. */
  ranks: number;
  dataset_bytes: number;
  model_bytes: number;
  checkpoint_bytes: number;
  /** That uploads take which are not complete. */
  upload_bytes: number;
}

/** All that counts as storage. */
export function storedBytes({
  dataset_bytes,
  model_bytes,
  checkpoint_bytes,
  upload_bytes,
}: ProjectUse): number {
  return dataset_bytes + model_bytes + checkpoint_bytes + upload_bytes;
}

export interface Projects {
  /** Names of all projects that have or had anything, 'default' among them, in order. */
  listProjects(): Promise<string[]>;
  /** Nulls where there is no limit. */
  getQuota(project: string): Promise<ProjectQuota>;
  /** What is there already stays, even where it is more. The project exists from then on. */
  putQuota(project: string, quota: ProjectQuota): Promise<void>;
  getUse(project: string): Promise<ProjectUse>;
  /** One entry for each day from `from` to `to` (`YYYY-MM-DD`); days are kept for 400 days. */
  getUsage(project: string, from: string, to: string): Promise<DayUsage[]>;
}
