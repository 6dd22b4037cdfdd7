import { link, mkdir, open, readdir, realpath, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';

export type { FileHandle } from 'node:fs/promises';

/** Data and models are private to their owner on the machine. */
export const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** System calls of `FileStore`; tests replace them by failures (a full disk, a lost permission). */
export interface FileSystem {
  link: typeof link;
  mkdir: typeof mkdir;
  open: typeof open;
  readdir: typeof readdir;
  realpath: typeof realpath;
  rename: typeof rename;
  rm: typeof rm;
  rmdir: typeof rmdir;
  stat: typeof stat;
  unlink: typeof unlink;
}

export const nodeFileSystem: FileSystem = {
  link,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
};
