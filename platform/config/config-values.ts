/**
 * Parsers of single settings. Each takes the text of a variable and throws an Error that states the required
 * form.
 */
import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import ipaddr from 'ipaddr.js';
import { isBucketName, keyFault } from '../../contracts/index.js';
import type { AllowedBucket } from '../dataset-sources.js';
import { redisAddress } from './redis-address.js';

const POOL_PATTERN = /^[a-z0-9][a-z0-9-]{0,39}$/;
const MIN_API_KEY_LENGTH = 16;
const MAX_LEVELS = 8;
const MAX_PATH_CHARACTERS = 1_000;

export function nonEmpty(text: string): string {
  if (text.trim() === '') throw new Error('must not be blank');
  return text;
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      throw new Error(`must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
    }
    return value;
  };
}

export function price(text: string): number {
  const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new Error(`must be a price such as 0.25, not ${JSON.stringify(text)}`);
  return value;
}

export function currencyCode(text: string): string {
  if (!Intl.supportedValuesOf('currency').includes(text))
    throw new Error(`must be an ISO 4217 code such as EUR, not ${JSON.stringify(text)}`);
  return text;
}

export function oneOf<const T extends readonly string[]>(values: T): (text: string) => T[number] {
  return (text) => {
    if (!values.includes(text)) {
      throw new Error(`must be one of ${values.join(', ')}, not ${JSON.stringify(text)}`);
    }
    return text;
  };
}

export function url(protocols: readonly string[]): (text: string) => string {
  // The value stays out of the message: a URL may hold a password.
  const wanted = `must be a URL beginning with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
  return (text) => {
    if (!URL.canParse(text)) throw new Error(wanted);
    const { protocol, pathname } = new URL(text);
    if (!protocols.includes(protocol)) throw new Error(wanted);
    if ((protocol === 'unix:' || protocol === 'file:') && !isAbsolute(pathname)) {
      throw new Error(`${wanted} and an absolute path`);
    }
    return text;
  };
}

/** URL of an HTTP server without user, query and fragment; null for `none`. */
export function urlOrNone(text: string): string | null {
  if (text === 'none') return null;
  const given = url(['http:', 'https:'])(text);
  const { username, search, hash } = new URL(given);
  if (username !== '' || search !== '' || hash !== '')
    throw new Error('must be none, or a URL without user, query and fragment');
  return given;
}

export function redisUrl(text: string): string {
  redisAddress(text);
  return text;
}

export function apiKey(text: string): string {
  if (text.length < MIN_API_KEY_LENGTH || /\s/.test(text)) {
    throw new Error(`must have at least ${MIN_API_KEY_LENGTH} characters and no white space`);
  }
  return text;
}

export function ipAddress(text: string): string {
  if (isIP(text) === 0) throw new Error(`must be an IP address of this machine, not ${JSON.stringify(text)}`);
  return text;
}

export function roleArn(text: string): string {
  if (!/^arn:[a-z-]+:iam::[^:\s]*:role\/\S+$/.test(text)) {
    throw new Error(
      `must be the ARN of a role, as arn:aws:iam::123456789012:role/attempt, not ${JSON.stringify(text)}`,
    );
  }
  return text;
}

/** Parses `none` or names with slashes between; unnamed levels are left out. */
export function namePath(text: string): readonly string[] {
  const names = text === 'none' ? [] : text.split('/').filter((name) => name !== '');
  if (names.length > MAX_LEVELS || text.length > MAX_PATH_CHARACTERS)
    throw new Error(
      `must be none or up to ${MAX_LEVELS} names with slashes between, not ${JSON.stringify(text)}`,
    );
  return names;
}

export function poolName(text: string): string {
  if (!POOL_PATTERN.test(text)) {
    throw new Error(
      'must be 1 to 40 lower-case letters, digits and hyphens, beginning with a letter or digit',
    );
  }
  return text;
}

/** Parses `none` or a comma-separated list of ranges. */
export function cidrList(text: string): readonly string[] {
  const ranges = text === 'none' ? [] : text.split(',').map((range) => range.trim());
  const bad = ranges.find((range) => !ipaddr.isValidCIDR(range));
  if (bad !== undefined)
    throw new Error(
      `must be none or ranges such as 10.1.0.0/16 with commas between, not ${JSON.stringify(bad)}`,
    );
  return ranges;
}

/** Parses `none` or a comma-separated list of buckets and folders of buckets. */
export function bucketList(text: string): readonly AllowedBucket[] {
  return text === 'none' ? [] : text.split(',').map((entry) => allowedBucket(entry.trim()));
}

function allowedBucket(text: string): AllowedBucket {
  const [bucket = '', ...folders] = text.replace(/\/$/, '').split('/');
  const prefix = folders.join('/');
  if (!isBucketName(bucket) || (folders.length > 0 && keyFault(prefix) !== null))
    throw new Error(
      `must be none or buckets such as my-data,other/folder with commas between, not ${JSON.stringify(text)}`,
    );
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` };
}
