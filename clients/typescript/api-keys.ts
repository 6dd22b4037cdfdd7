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

  get(keyId: string): Promise<ApiKey> {
    return bodyOf(
      `key ${keyId}`,
      this.http.GET('/v1/api-keys/{key_id}', { params: { path: { key_id: keyId } } }),
    );
  }

  /** Keys of the project, newest first, optionally filtered by name; operators may list another project. */
  list(query: ListQuery<'listApiKeys'> = {}): AsyncIterable<ApiKey> {
    return allPages((after) =>
      bodyOf('list of keys', this.http.GET('/v1/api-keys', { params: { query: { ...query, after } } })),
    );
  }

  /** Changes name, expiry or rate; `null` removes expiry or rate. */
  update(keyId: string, body: ApiKeyPatch, match: Match = {}): Promise<ApiKey> {
    const params = { path: { key_id: keyId }, ...matchHeader(match) };
    return bodyOf(`change of ${keyId}`, this.http.PATCH('/v1/api-keys/{key_id}', { params, body }));
  }

  /** Creates a new secret; the previous one stays valid for `overlap_seconds`, a day by default. */
  rotate(keyId: string, overlapSeconds?: number): Promise<NewApiKey> {
    const params = { path: { key_id: keyId } };
    return bodyOf(
      `rotation of ${keyId}`,
      this.http.POST('/v1/api-keys/{key_id}/rotate', { params, body: { overlap_seconds: overlapSeconds } }),
    );
  }

  async revoke(keyId: string): Promise<void> {
    const params = { path: { key_id: keyId } };
    await bodyOf(`revoke ${keyId}`, this.http.DELETE('/v1/api-keys/{key_id}', { params }));
  }
}
