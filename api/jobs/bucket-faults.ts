import { type FieldError, type FieldErrorCode, ZerofleetError } from '../../contracts/index.js';

type Faults = Partial<Record<ZerofleetError['code'], FieldErrorCode>>;

/** What can be wrong with anything in a bucket that a document names. */
const PLACE: Faults = {
  invalid_parameter: 'wrong_format',
  dataset_uri_refused: 'dataset_uri_refused',
  dataset_source_missing: 'dataset_source_missing',
  dataset_source_denied: 'dataset_source_denied',
};

/** What can be wrong with an object, as people learn it who register one. The rest is no fault of the document. */
const OBJECT: Faults = {
  ...PLACE,
  dataset_too_large: 'dataset_too_large',
  dataset_empty: 'dataset_empty',
  dataset_not_utf8: 'dataset_not_utf8',
  dataset_bad_line: 'dataset_bad_line',
  dataset_tokens_invalid: 'dataset_tokens_invalid',
};

const FOLDER: Faults = {
  ...PLACE,
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
  ...PLACE,
  model_too_large: 'tokenizer_too_large',
  tokenizer_invalid: 'tokenizer_invalid',
};

/** What is wrong with the object that is a document's data. @throws the error itself when it is about something else */
export const objectFault = (error: unknown): FieldError => faultOf(error, '/data/uri', OBJECT);

/** What is wrong with the folder that a document begins with. @throws the error itself when it is about something else */
export const folderFault = (error: unknown): FieldError => faultOf(error, '/model/init_from/uri', FOLDER);

/** What is wrong with the object that is a document's tokenizer. @throws the error itself when it is about something else */
export const tokenizerFault = (error: unknown): FieldError => faultOf(error, '/data/tokenizer', TOKENIZER);

function faultOf(error: unknown, pointer: string, faults: Faults): FieldError {
  const code = error instanceof ZerofleetError ? faults[error.code] : undefined;
  if (code === undefined) throw error;
  return { pointer, code, message: (error as ZerofleetError).message };
}
