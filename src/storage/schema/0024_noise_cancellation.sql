-- True was stored where nobody had asked for it. What is not asked for is null from now on, and acts
-- in web calls only.
UPDATE assistants SET settings = replace(
  settings, '"enable_noise_cancellation":true', '"enable_noise_cancellation":null');
