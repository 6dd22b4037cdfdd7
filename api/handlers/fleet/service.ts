import { setTimeout as delay } from 'node:timers/promises';
import { type Health, isErrorCode, type Readiness, type ReadinessCheck } from '../../../contracts/index.js';
import { PROGRAM_VERSION } from '../../../platform/process/version.js';
import type { OperationHandler } from '../types.js';

export const getHealth: OperationHandler<'getHealth'> = (request, reply) => {
  const isDraining = request.server.services.draining.aborted;
  const health: Health = { status: isDraining ? 'draining' : 'ok', version: PROGRAM_VERSION };
  return reply.code(isDraining ? 503 : 200).send(health);
};

export const getReadiness: OperationHandler<'getReadiness'> = async (request, reply) => {
  const { store, objects, limits, draining } = request.server.services;
  const [redis, objectStore] = await Promise.all([
    check(() => store.check(), 'job_store_unavailable', limits.readiness_timeout_ms),
    check(() => objects.check(), 'object_store_unavailable', limits.readiness_timeout_ms),
  ]);
  const isReady = redis.ok && objectStore.ok && !draining.aborted;
  const readiness: Readiness = {
    status: isReady ? 'ready' : 'not_ready',
    checks: { redis, object_store: objectStore },
  };
  return reply.code(isReady ? 200 : 503).send(readiness);
};

export const getOpenapi: OperationHandler<'getOpenapi'> = (request, reply) =>
  reply.type('application/yaml; charset=utf-8').send(request.server.services.contract.text);

/** Runs one check; a timeout is reported as `timeoutCode`. */
async function check(
  ask: () => Promise<void>,
  timeoutCode: string,
  timeoutMs: number,
): Promise<ReadinessCheck> {
  const timer = new AbortController();
  const tooLate = delay(timeoutMs, { ok: false, code: timeoutCode }, { signal: timer.signal });
  const answer = ask().then(
    () => ({ ok: true, code: null }),
    (error: { code?: unknown }) => ({ ok: false, code: isErrorCode(error.code) ? error.code : timeoutCode }),
  );
  try {
    return await Promise.race([answer, tooLate.catch(() => answer)]);
  } finally {
    timer.abort();
  }
}
