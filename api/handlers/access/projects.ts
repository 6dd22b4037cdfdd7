import { isFinal, JOB_STATES, type Me, type Project, ZerofleetError } from '../../../contracts/index.js';
import { type Principal, type Projects, putQuotaDocument, storedBytes } from '../../../state/index.js';
import type { ApiServices } from '../../services.js';
import type { OperationHandler } from '../types.js';

export const listProjects: OperationHandler<'listProjects'> = async (request) => {
  const { store } = request.server.services;
  const names = await store.listProjects();
  return { data: await Promise.all(names.map((name) => describeProject(store, name))) };
};

export const getProject: OperationHandler<'getProject'> = (request) =>
  describeProject(request.server.services.store, request.params.project);

export const putProject: OperationHandler<'putProject'> = async (request) => {
  const { store, objects } = request.server.services;
  const { project } = request.params;
  const { max_jobs = null, max_ranks = null, max_storage_bytes = null } = request.body.quota;
  const quota = { max_jobs, max_ranks, max_storage_bytes };
  await store.putQuota(project, quota);
  await putQuotaDocument(objects, project, quota);
  return describeProject(store, project);
};

export const getMe: OperationHandler<'getMe'> = ({ server, principal }) => {
  if (principal === null) throw new ZerofleetError('internal_error', 'a request without a principal');
  return describePrincipal(server.services, principal);
};

/** A share does not show its project. */
export async function describePrincipal(
  { store, currency }: Pick<ApiServices, 'store' | 'currency'>,
  { api_key, share, user, scopes, project }: Principal,
): Promise<Me> {
  const shown = share === null ? await describeProject(store, project) : null;
  return { api_key, share, user, scopes: [...scopes], project: shown, currency };
}

async function describeProject(store: Pick<Projects, 'getQuota' | 'getUse'>, name: string): Promise<Project> {
  const [quota, use] = await Promise.all([store.getQuota(name), store.getUse(name)]);
  const jobs = JOB_STATES.filter((state) => !isFinal(state)).reduce((sum, state) => sum + use.jobs[state], 0);
  return { name, quota, used: { jobs, ranks: use.ranks, storage_bytes: storedBytes(use) } };
}
