import { ZerofleetError } from '../../contracts/index.js';
import { type Projects, storedBytes } from '../../state/index.js';

/**
 * Refuses an upload that exceeds the storage quota before its body is sent; otherwise only recording it would fail. An
 * upload of unknown length is refused if no storage is left.
 * @throws ZerofleetError `storage_quota_exceeded`
 */
export async function requireStorage(
  store: Pick<Projects, 'getQuota' | 'getUse'>,
  project: string,
  contentLength: string | undefined,
): Promise<void> {
  const { max_storage_bytes: max } = await store.getQuota(project);
  if (max === null) return;
  const bytes = storedBytes(await store.getUse(project));
  if (bytes + Math.max(1, Number(contentLength ?? 1)) <= max) return;
  throw new ZerofleetError(
    'storage_quota_exceeded',
    `${project} stores ${bytes} bytes, and its quota is ${max}: delete datasets, models, checkpoints or uploads, or ask an operator for a larger quota`,
  );
}
