-- Never written: a carrier's second offer is answered by the node that owns the call.
DROP TABLE carrier_offers;
