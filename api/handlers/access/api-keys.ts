import { randomBytes } from 'node:crypto';
import {
  type ApiKey,
  type ApiKeyPatch,
  type ApiKeyRequest,
  type FieldError,
  type NewApiKey,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { ApiKeys, Principal } from '../../../state/index.js';
import { patched } from '../../access/change-record.js';
import { found, notFound } from '../../access/found.js';
import { isOperator, projectAsked } from '../../access/operator.js';
import { sendRecord } from '../../http/etag.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import type { OperationHandler } from '../types.js';

const DAY_SECONDS = 86_400;

type Rights = Pick<Principal, 'project' | 'scopes'>;

export const createApiKey: OperationHandler<'createApiKey'> = async (request, reply): Promise<NewApiKey> => {
  const { store } = request.server.services;
  const { principal: by, body } = request;
  const errors = errorsOf(body, by);
  if (errors.length > 0) throw invalidDocument(errors);
  const secret = newSecret();
  const { project = request.records.project } = body;
  const expiresAt = timeText(body.expires_at ?? null);
  const key = await store.putApiKey(secret, { ...body, project, expires_at: expiresAt });
  reply.code(201).header('location', `/v1/api-keys/${key.id}`).header('cache-control', 'no-store');
  return { ...key, secret };
};

export const listApiKeys: OperationHandler<'listApiKeys'> = (request) => {
  const { project: asked, ...page } = request.query;
  const project = projectAsked(asked, request);
  return request.server.services.store.listApiKeys({ ...page, project });
};

/** Fields that `updateApiKey` can change. */
const CHANGEABLE = ['name', 'expires_at', 'requests_per_minute'] as const satisfies (keyof ApiKeyPatch)[];

export const getApiKey: OperationHandler<'getApiKey'> = async (request, reply) => {
  const { key_id } = request.params;
  return sendRecord(
    reply,
    await findKey(request.server.services.store, key_id, request.principal),
    CHANGEABLE,
  );
};

export const updateApiKey: OperationHandler<'updateApiKey'> = async (request, reply) => {
  const { store } = request.server.services;
  const { headers, principal: by } = request;
  const { expires_at, ...rest } = request.body;
  const errors = expiryErrors(expires_at);
  if (errors.length > 0) throw invalidDocument(errors);
  const { id } = requireRights(await findKey(store, request.params.key_id, by), by);
  const body = { ...rest, ...(expires_at !== undefined && { expires_at: timeText(expires_at) }) };
  const key = await store.updateApiKey(id, patched<ApiKey>({ headers, body }, CHANGEABLE));
  return sendRecord(reply, found(key, 'API key', id), CHANGEABLE);
};

export const revokeApiKey: OperationHandler<'revokeApiKey'> = async (request, reply) => {
  const { store } = request.server.services;
  const key = await findKey(store, request.params.key_id, request.principal);
  if (!(await store.revokeApiKey(key.id))) throw notFound('API key', key.id);
  return reply.code(204).send();
};

export const rotateApiKey: OperationHandler<'rotateApiKey'> = async (request, reply): Promise<NewApiKey> => {
  const { store } = request.server.services;
  const { overlap_seconds = DAY_SECONDS } = request.body;
  const { principal: by } = request;
  const { id } = requireRights(await findKey(store, request.params.key_id, by), by);
  const secret = newSecret();
  const key = await store.rotateApiKey(id, secret, overlap_seconds * 1000);
  reply.header('cache-control', 'no-store');
  return { ...key, secret };
};

/** 256 random bits with a prefix that people and secret scanners recognize. */
function newSecret(): string {
  return `zf_${randomBytes(32).toString('base64url')}`;
}

/** Errors of a request for a key. A key cannot grant rights that it lacks. */
function errorsOf({ scopes, project, expires_at }: ApiKeyRequest, by: Rights | null): FieldError[] {
  const errors: FieldError[] = [];
  const isForeign = project !== undefined && project !== by?.project;
  if (isForeign && !isOperator(by)) {
    const message = 'only a key with the scope operator may create keys of other projects';
    errors.push({ pointer: '/project', code: 'project_mismatch', message, suggestion: by?.project ?? '' });
  }
  const operator = scopes.indexOf('operator');
  if (operator >= 0 && !isOperator(by)) {
    const message = 'only a key with the scope operator may grant it';
    errors.push({ pointer: `/scopes/${operator}`, code: 'scope_not_granted', message });
  }
  return [...errors, ...expiryErrors(expires_at)];
}

function expiryErrors(expiresAt: string | null = null): FieldError[] {
  if (expiresAt === null || Date.parse(expiresAt) > Date.now()) return [];
  return [{ pointer: '/expires_at', code: 'time_in_past', message: `${expiresAt} has passed` }];
}

function timeText(time: string | null): string | null {
  return time && new Date(time).toISOString();
}

/**
 * Requires the scope operator for changing a key with that scope: rotation reveals its secret, and an update extends
 * its life.
 * @throws ZerofleetError `insufficient_scope`
 */
function requireRights(key: ApiKey, by: Rights | null): ApiKey {
  if (!isOperator(key) || isOperator(by)) return key;
  throw new ZerofleetError('insufficient_scope', `${key.id} has the scope operator, but your key does not`);
}

/** @throws ZerofleetError `api_key_not_found`, also for a key that `by` may not read */
async function findKey(store: Pick<ApiKeys, 'getApiKey'>, id: string, by: Rights | null): Promise<ApiKey> {
  const key = found(await store.getApiKey(id), 'API key', id);
  if (key.project !== by?.project && !isOperator(by)) throw notFound('API key', id);
  return key;
}
