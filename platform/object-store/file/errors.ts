import { type ObjectStoreCode, ObjectStoreError } from '../common/errors.js';

const CODES: Readonly<Record<string, ObjectStoreCode>> = {
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  EACCES: 'access_denied',
  EPERM: 'access_denied',
  EROFS: 'access_denied',
  ELOOP: 'access_denied',
  // A key that is a path prefix of another one: excluded by the port, because a directory cannot hold both.
  EISDIR: 'invalid_key',
  ENOTDIR: 'invalid_key',
  ENAMETOOLONG: 'invalid_key',
  EEXIST: 'invalid_key',
  ENOTEMPTY: 'invalid_key',
};

export function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(String((error as NodeJS.ErrnoException | undefined)?.code));
}

/**
 * Converts a system call's error to an `ObjectStoreError`; returns one unchanged.
 * @param subject key or directory for the message
 * @param missing code for "no such file"
 */
export function fileError(error: unknown, subject: string, missing: ObjectStoreCode): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const errno = (error as NodeJS.ErrnoException | undefined)?.code ?? '';
  const code = errno === 'ENOENT' ? missing : (CODES[errno] ?? 'object_store_unavailable');
  return new ObjectStoreError(code, `${subject}: ${errno || String(error)}`, { cause: error });
}

/** Returns the error of opening a store on a directory. */
export function openError(error: unknown, root: string): ObjectStoreError {
  const known = fileError(error, root, 'bucket_not_found');
  if (known.code !== 'bucket_not_found') return known;
  return new ObjectStoreError(
    known.code,
    `the directory of the object store does not exist: ${root}; make it, or mount the disk that it is on`,
    { cause: error },
  );
}
