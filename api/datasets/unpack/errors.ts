import { ZerofleetError } from '../../../contracts/index.js';

export function cannotUnpack(format: 'gzip' | 'zstd', what: string): ZerofleetError {
  return new ZerofleetError('dataset_compression_invalid', `the content is not valid ${format}: ${what}`);
}
