import type { operations } from '../../contracts/generated/openapi.js';
import type { HubToken, Project, ProjectQuota, ProjectUsage } from '../../contracts/types.js';
import { bodyOf, type Http } from './transport.js';

type UsagePeriod = NonNullable<operations['getUsage']['parameters']['query']>;

/** Quotas and usage of projects. */
export class Projects {
  constructor(private readonly http: Http) {}

  /** Usage of the key's own project by day, thirty days by default, and its current usage. */
  usage(query: UsagePeriod = {}): Promise<ProjectUsage> {
    return bodyOf('usage', this.http.GET('/v1/usage', { params: { query } }));
  }

  /** Whether the key's own project has a token of the Hugging Face Hub. */
  hubToken(): Promise<HubToken> {
    return bodyOf('hub token', this.http.GET('/v1/hub-token'));
  }

  /** Sets the token with which the server reads the Hub for the key's own project; null deletes it. */
  async setHubToken(token: string | null): Promise<HubToken> {
    if (token !== null) return bodyOf('hub token', this.http.PUT('/v1/hub-token', { body: { token } }));
    await bodyOf('hub token', this.http.DELETE('/v1/hub-token'));
    return { set_at: null };
  }

  /** All projects; for operators. */
  async list(): Promise<Project[]> {
    return (await bodyOf('list of projects', this.http.GET('/v1/projects'))).data;
  }

  /** One project; for operators. */
  get(project: string): Promise<Project> {
    const params = { path: { project } };
    return bodyOf(`project ${project}`, this.http.GET('/v1/projects/{project}', { params }));
  }

  /** Sets all limits; an omitted limit is unlimited. For operators. */
  put(project: string, quota: Partial<ProjectQuota>): Promise<Project> {
    const params = { path: { project } };
    return bodyOf(
      `quota of ${project}`,
      this.http.PUT('/v1/projects/{project}', { params, body: { quota } }),
    );
  }
}
