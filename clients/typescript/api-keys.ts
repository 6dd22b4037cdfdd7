import type { ApiKey, ApiKeyPatch, ApiKeyRequest, NewApiKey } from '../../contracts/types.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http, type Match, matchHeader } from './transport.js';

/** API keys; requires the scope `admin`. */
export class ApiKeys {
  constructor(private readonly http: Http) {}

  /** Creates a key. Only this answer contains its secret. */
  create(body: ApiKeyRequest): Promise<NewApiKey> {
    return bodyOf(`key ${body.name}`, this.http.POST('/v1/api-keys', { body }));
  }

  get(key_id: string): Promise<ApiKey> {
    return bodyOf(`key ${key_id}`, this.http.GET('/v1/api-keys/{key_id}', { params: { path: { key_id } } }));
  }

  /** Keys of the project, newest first, optionally filtered by name; operators may list another project. */
  list(query: ListQuery<'listApiKeys'> = {}): AsyncIterable<ApiKey> {
    return allPages((after) =>
      bodyOf('list of keys', this.http.GET('/v1/api-keys', { params: { query: { ...query, after } } })),
    );
  }

  /** Changes name, expiry or rate; `null` removes expiry or rate. */
  update(key_id: string, body: ApiKeyPatch, match: Match = {}): Promise<ApiKey> {
    const params = { path: { key_id }, ...matchHeader(match) };
    return bodyOf(`change of ${key_id}`, this.http.PATCH('/v1/api-keys/{key_id}', { params, body }));
  }

  /** Creates a new secret; the previous one stays valid for `overlap_seconds`, a day by default. */
  rotate(key_id: string, overlap_seconds?: number): Promise<NewApiKey> {
    const params = { path: { key_id } };
    return bodyOf(
      `rotation of ${key_id}`,
      this.http.POST('/v1/api-keys/{key_id}/rotate', { params, body: { overlap_seconds } }),
    );
  }

  async revoke(key_id: string): Promise<void> {
    const params = { path: { key_id } };
    await bodyOf(`revoke ${key_id}`, this.http.DELETE('/v1/api-keys/{key_id}', { params }));
  }
}
