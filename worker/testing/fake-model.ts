import { modelFolder, safetensorsFile, testData } from '../../formats/testing/models.js';
import { fakeParamTable } from './fake-state.js';

/** Returns the files of an uploaded model with the parameters of the fake core. */
export function fakeModelFolder() {
  const weights = fakeParamTable().map(({ name, shape }) => ({
    name,
    shape,
    dtype: 'BF16' as const,
    data: testData(name, shape, 'BF16'),
  }));
  return modelFolder().set('model.safetensors', safetensorsFile(weights));
}
