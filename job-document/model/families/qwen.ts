/** Layer types of Qwen2 and Qwen3: some layers, by default the last ones, may have a sliding window. */
import type { ConfigReader } from '../reader.js';
import { type LayerTypes, readLayerTypes } from './layer-types.js';

export function readQwenLayerTypes(
  reader: ConfigReader,
  layers: number,
): LayerTypes & { max_window_layers: number } {
  const maxWindowLayers = reader.integer('max_window_layers', { min: 0, max: 1024, fallback: 28 });
  return {
    max_window_layers: maxWindowLayers,
    ...readLayerTypes(reader, layers, { window: 4096, slides: (layer) => layer >= maxWindowLayers }),
  };
}
