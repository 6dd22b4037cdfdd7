import type { operations } from '../contracts/generated/openapi.js';
import type { Project, ProjectQuota, ProjectUsage } from '../contracts/types.js';
import { bodyOf, type Http } from './transport.js';

type UsagePeriod = NonNullable<operations['getUsage']['parameters']['query']>;

/** What projects may use and have used. */
export class Projects {
  constructor(private readonly http: Http) {}

  /** What the key's own project has used by day, thirty days unless said otherwise, and what it has now. */
  usage(query: UsagePeriod = {}): Promise<ProjectUsage> {
    return bodyOf('usage', this.http.GET('/v1/usage', { params: { query } }));
  }

  /** All projects; for operators. */
  async list(): Promise<Project[]> {
    return (await bodyOf('list of projects', this.http.GET('/v1/projects'))).data;
  }

  /** For operators. */
  get(project: string): Promise<Project> {
    const params = { path: { project } };
    return bodyOf(`project ${project}`, this.http.GET('/v1/projects/{project}', { params }));
  }

  /** Sets all limits; one that is left out is none. For operators. */
  put(project: string, quota: Partial<ProjectQuota>): Promise<Project> {
    const params = { path: { project } };
    return bodyOf(
      `quota of ${project}`,
      this.http.PUT('/v1/projects/{project}', { params, body: { quota } }),
    );
  }
}
