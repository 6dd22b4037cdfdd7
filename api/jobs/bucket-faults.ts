import { type FieldError, type FieldErrorCode, ZerofleetError } from '../../contracts/index.js';

type Faults = Partial<Record<ZerofleetError['code'], FieldErrorCode>>;

/** Errors of any URI in a document. */
const LOCATION: Faults = {
  invalid_parameter: 'wrong_format',
  dataset_uri_refused: 'dataset_uri_refused',
  dataset_source_missing: 'dataset_source_missing',
  dataset_source_denied: 'dataset_source_denied',
  dataset_source_corrupt: 'dataset_source_corrupt',
};

/** Errors of an object, as in the registration of a dataset. Other errors are not errors of the document. */
const OBJECT: Faults = {
  ...LOCATION,
  dataset_too_large: 'dataset_too_large',
  dataset_empty: 'dataset_empty',
  dataset_not_utf8: 'dataset_not_utf8',
  dataset_compression_invalid: 'dataset_compression_invalid',
  dataset_parquet_invalid: 'dataset_parquet_invalid',
  dataset_line_invalid: 'dataset_line_invalid',
  dataset_tokens_invalid: 'dataset_tokens_invalid',
};

const FOLDER: Faults = {
  ...LOCATION,
  model_too_large: 'model_too_large',
  model_archive_invalid: 'model_archive_invalid',
  model_config_invalid: 'model_config_invalid',
  model_file_missing: 'model_file_missing',
  model_index_mismatch: 'model_index_mismatch',
  model_tensor_missing: 'model_tensor_missing',
  model_tensor_unexpected: 'model_tensor_unexpected',
  model_tensor_mismatch: 'model_tensor_mismatch',
  safetensors_invalid: 'safetensors_invalid',
  tokenizer_invalid: 'tokenizer_invalid',
};

const TOKENIZER: Faults = {
  ...LOCATION,
  model_too_large: 'tokenizer_too_large',
  tokenizer_invalid: 'tokenizer_invalid',
};

/**
 * Field error of an object used as data, whose URI is at `pointer`. @throws the error itself when it concerns something
 * else
 */
export const objectFault = (error: unknown, pointer: string): FieldError => faultOf(error, pointer, OBJECT);

/** Field error of the folder used as initial model. @throws the error itself when it concerns something else */
export const folderFault = (error: unknown): FieldError => faultOf(error, '/model/init_from/uri', FOLDER);

/** Field error of the object used as tokenizer. @throws the error itself when it concerns something else */
export const tokenizerFault = (error: unknown): FieldError => faultOf(error, '/data/tokenizer', TOKENIZER);

function faultOf(error: unknown, pointer: string, faults: Faults): FieldError {
  const code = error instanceof ZerofleetError ? faults[error.code] : undefined;
  if (code === undefined) throw error;
  return { pointer, code, message: (error as ZerofleetError).message };
}
