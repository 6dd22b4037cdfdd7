/** Requests that the forms of the administration make. */
import type {
  ApiKey,
  ApiKeyPatch,
  ApiKeyRequest,
  ProjectQuota,
  Scope,
  WebhookSpec,
} from '../../../contracts/types.js';

const textOf = (form: FormData, name: string) => String(form.get(name) ?? '').trim();

const numberOf = (form: FormData, name: string) => {
  const text = textOf(form, name);
  return text === '' ? undefined : Number(text);
};

/**
 * Time of a `datetime-local` field in RFC 3339; undefined without one. @param local `2026-11-27T20:00`, in the
 * browser's time zone
 */
export function timeOf(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

/** The inverse of `timeOf`, to the minute; empty without a time. */
export function localOf(time: string | null): string {
  if (time === null) return '';
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Absent fields of an answer of the form are left to the server. */
export function keyRequestOf(form: FormData): ApiKeyRequest {
  return {
    name: textOf(form, 'name'),
    scopes: form.getAll('scopes') as Scope[],
    project: textOf(form, 'project') || undefined,
    expires_at: timeOf(textOf(form, 'expires_at')),
    requests_per_minute: numberOf(form, 'requests_per_minute'),
  };
}

type Changeable = Pick<ApiKey, 'name' | 'expires_at' | 'requests_per_minute'>;

/** Fields of a key that the form has changed. An untouched expiry, of which the form shows no seconds, is none. */
export function keyPatchOf(form: FormData, key: Changeable): ApiKeyPatch {
  const name = textOf(form, 'name');
  const expires = textOf(form, 'expires_at');
  const requestsPerMinute = numberOf(form, 'requests_per_minute') ?? null;
  return {
    ...(name !== key.name && { name }),
    ...(expires !== localOf(key.expires_at) && { expires_at: timeOf(expires) ?? null }),
    ...(requestsPerMinute !== key.requests_per_minute && { requests_per_minute: requestsPerMinute }),
  };
}

/** Seconds for which the previous secret stays valid. */
export const overlapOf = (form: FormData) => numberOf(form, 'overlap_seconds');

/** Events are separated by spaces or commas. */
export function webhookSpecOf(form: FormData): WebhookSpec {
  return {
    url: textOf(form, 'url'),
    description: textOf(form, 'description'),
    events: textOf(form, 'events').split(/[\s,]+/),
    jobs: textOf(form, 'jobs') as WebhookSpec['jobs'],
  };
}

export const GIB = 2 ** 30;

/** An empty field is no limit. Storage is entered in GiB. */
export function quotaOf(form: FormData): ProjectQuota {
  const storage = numberOf(form, 'max_storage');
  return {
    max_jobs: numberOf(form, 'max_jobs') ?? null,
    max_ranks: numberOf(form, 'max_ranks') ?? null,
    max_storage_bytes: storage === undefined ? null : Math.round(storage * GIB),
  };
}
