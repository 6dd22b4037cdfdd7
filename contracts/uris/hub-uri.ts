import { keyFault } from './s3-uri.js';

/** A file or folder of a repository on the Hugging Face Hub, as `hf://owner/name@revision/path`. */
export interface HubUri {
  kind: 'model' | 'dataset';
  /** `owner/name` */
  repository: string;
  /** Branch, tag or commit. */
  revision: string;
  /** Path inside the repository, unencoded; empty for the whole repository. */
  path: string;
}

/** Pull requests and converted files are the only revisions with a slash. */
const URI =
  /^hf:\/\/(datasets\/)?([^/@]+)\/([^/@]+)(?:@(refs\/(?:pr\/\d+|convert\/[a-z]+)|[^/]*))?(?:\/(.*))?$/s;
/** An owner, or the name of a repository. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}$/;
const REVISION = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}$/;
const COMMIT = /^[0-9a-f]{40}$/;
/** Repositories of other kinds, which are no owners. */
const OTHER_KINDS = new Set(['datasets', 'models', 'spaces', 'buckets']);
const FORM = 'is not of the form hf://owner/name@revision or hf://datasets/owner/name@revision/path';

/**
 * Parses an URI of the Hub. The default revision is `main`.
 * @throws Error whose message completes a sentence
 */
export function parseHubUri(text: string): HubUri {
  const [, datasets, owner = '', name = '', revision = 'main', rest = ''] = URI.exec(text) ?? [];
  const areNames = [owner, name].every((part) => NAME.test(part) && !part.includes('..'));
  if (!areNames || OTHER_KINDS.has(owner)) throw new Error(FORM);
  if (!(REVISION.test(revision.replace(/^refs\/(pr|convert)\//, '')) && !revision.includes('..')))
    throw new Error('has an invalid revision; name a branch, a tag or a commit');
  const path = rest.replace(/\/$/, '');
  const fault = path === '' ? null : keyFault(path, 'path');
  if (fault !== null) throw new Error(fault);
  return {
    kind: datasets === undefined ? 'model' : 'dataset',
    repository: `${owner}/${name}`,
    revision,
    path,
  };
}

/** Inverse of `parseHubUri`. */
export function hubUriText({ kind, repository, revision, path }: HubUri): string {
  const prefix = kind === 'dataset' ? 'datasets/' : '';
  return `hf://${prefix}${repository}@${revision}${path === '' ? '' : `/${path}`}`;
}

/** True for the id of a commit, whose content never changes. */
export function isCommit(revision: string): boolean {
  return COMMIT.test(revision);
}

/** Removes the commit from an URI of the Hub; returns any other text unchanged. */
export function withoutCommit(uri: string): string {
  return uri.replace(/^(hf:\/\/[^@]+)@[0-9a-f]{40}(?=\/|$)/, '$1');
}

/** True for the URIs from which content is copied: `s3://…` and `hf://…`. */
export function isSourceUri(text: unknown): text is `${'s3' | 'hf'}://${string}` {
  return typeof text === 'string' && /^(s3|hf):\/\//.test(text);
}
